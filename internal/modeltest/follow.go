package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Hands are the tool calls by which an agent does what a line says.
type Hands struct {
	Run   func(command string) Call
	Write func(path, text string) Call
	Read  func(path string) Call
	// Ask asks a person; nil where the agent has no tool for it.
	Ask func(question string, options []string) Call
	// Sandboxed runs a command in the agent's own sandbox, where Run leaves it; nil where there is none.
	Sandboxed func(command string) Call
	// Background starts a command that outlives its turn; nil where the agent has no tool for it.
	Background func(command string) Call
	// Tool calls a tool of the MCP server with the path of a file; nil where there is no server.
	Tool func(name, path string) Call
	// Agent gives a line to a sub-agent; nil where the agent has no tool for it.
	Agent func(line string) Call
	// Questions asks a person several things at once; nil where the agent has no tool for it.
	Questions func(list []Asked) Call
	// Propose proposes a task, with the arguments of the tool that Drawbridge offers for it; nil where the agent has none.
	Propose func(arguments string) Call
	// Plan hands over a plan, by a call or by a text that ends the turn; nil where the agent does not plan.
	Plan func(plan string) Reply
	// Refused is the beginning of a tool's result that says that it was not allowed.
	Refused string
}

// Asked is a question to a person.
type Asked struct {
	ID       string   `json:"id"`
	Text     string   `json:"text"`
	Options  []string `json:"options,omitempty"`
	Multiple bool     `json:"multiple,omitempty"`
	Secret   bool     `json:"secret,omitempty"`
}

// Follow is a script that does what its prompt says, line by line, so that a test can steer the agent around it:
//
//	say TEXT            says it
//	long N              says N characters
//	run COMMAND         calls the tool that runs it
//	together A || B     calls it for each of them in one answer
//	sandboxed COMMAND   calls the tool that runs it in the agent's sandbox
//	background COMMAND  calls the tool that starts it and does not wait
//	tool NAME PATH      calls the tool of the MCP server
//	write PATH TEXT     calls the tool that writes TEXT and a newline to the file
//	read PATH           calls the tool that reads it, and says the result
//	ask QUESTION|A|B    calls the tool that asks a person, and says the result
//	questions JSON      calls it for a list of Asked, and says the result; backwards, if one of them is secret
//	propose JSON        calls the tool that proposes a task with these arguments, and says the result
//	agent LINE          calls the tool that gives the line to a sub-agent
//	plan TEXT           hands over a plan, in which \n begins a new line
//	turns               says how many prompts the conversation has
//	nonsense            calls a tool that is not there, as often as it is let
//
// What a refused call returned is said. Any other line is said back.
func Follow(h Hands) Script {
	return func(_ context.Context, r Request) Reply {
		f := &follower{hands: h}
		for _, m := range r.Messages {
			switch m.Role {
			case "user":
				f.turns, f.prompt, f.results = f.turns+1, m.Content, nil
			case "tool":
				f.results = append(f.results, m.Content)
			}
		}
		return f.reply()
	}
}

// follower plays the prompt from its start, past the calls that have results.
type follower struct {
	hands   Hands
	prompt  string
	turns   int
	results []string
	say     []string // not said yet: what comes after the last result
}

func (f *follower) reply() Reply {
	for line := range strings.Lines(f.prompt) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		var calls []Call
		switch word {
		case "":
			continue
		case "say":
			f.say = append(f.say, rest)
		case "long":
			n, err := strconv.Atoi(rest)
			if err != nil {
				n = 0
			}
			f.say = append(f.say, strings.Repeat("All work and no play. ", n/22+1)[:max(0, n)])
		case "turns":
			f.say = append(f.say, fmt.Sprintf("This is turn %d.", f.turns))
		case "plan":
			if f.hands.Plan == nil {
				f.say = append(f.say, line)
				continue
			}
			reply := f.hands.Plan(strings.ReplaceAll(rest, `\n`, "\n"))
			if len(reply.Calls) == 0 {
				reply.Text = strings.Join(append(f.say, reply.Text), "\n")
				return reply
			}
			calls = reply.Calls
		case "run", "sandboxed", "background", "tool", "agent", "questions", "propose":
			call, ok := f.hands.call(word, rest)
			if !ok {
				f.say = append(f.say, "I have no hand for this: "+line)
				continue
			}
			calls = []Call{call}
		case "together":
			for c := range strings.SplitSeq(rest, "||") {
				calls = append(calls, f.hands.Run(strings.TrimSpace(c)))
			}
		case "write":
			path, text, _ := strings.Cut(rest, " ")
			calls = []Call{f.hands.Write(path, text+"\n")}
		case "read":
			calls = []Call{f.hands.Read(rest)}
		case "ask":
			parts := strings.Split(rest, "|")
			if f.hands.Ask == nil {
				f.say = append(f.say, line)
				continue
			}
			calls = []Call{f.hands.Ask(parts[0], parts[1:])}
		case "nonsense":
			return Reply{Calls: []Call{{Name: "no such tool", Arguments: `{"broken`}}}
		default:
			f.say = append(f.say, line)
		}
		if len(calls) > len(f.results) {
			return Reply{Text: strings.Join(f.say, "\n"), Calls: calls[len(f.results):]}
		}
		for range calls {
			f.heard(word, rest)
		}
	}
	if len(f.say) == 0 {
		return Reply{Text: "Done."}
	}
	return Reply{Text: strings.Join(f.say, "\n")}
}

// call is the call for a word whose hand may be missing.
func (h Hands) call(word, rest string) (Call, bool) {
	name, path, _ := strings.Cut(rest, " ")
	switch {
	case word == "run":
		return h.Run(rest), true
	case word == "sandboxed" && h.Sandboxed != nil:
		return h.Sandboxed(rest), true
	case word == "background" && h.Background != nil:
		return h.Background(rest), true
	case word == "tool" && h.Tool != nil:
		return h.Tool(name, path), true
	case word == "agent" && h.Agent != nil:
		return h.Agent(rest), true
	case word == "propose" && h.Propose != nil:
		return h.Propose(rest), true
	case word == "questions" && h.Questions != nil:
		var list []Asked
		if json.Unmarshal([]byte(rest), &list) != nil {
			return Call{}, false
		}
		return h.Questions(list), true
	}
	return Call{}, false
}

// heard takes the next result. What was said before the call was said with it.
func (f *follower) heard(word, rest string) {
	result := f.results[0]
	f.results = f.results[1:]
	f.say = nil
	if word == "questions" && strings.Contains(rest, `"secret":true`) {
		letters := []rune(result)
		slices.Reverse(letters)
		result = string(letters)
	}
	if word == "read" || word == "ask" || word == "questions" || word == "propose" || strings.HasPrefix(result, f.hands.Refused) {
		f.say = append(f.say, result)
	}
}
