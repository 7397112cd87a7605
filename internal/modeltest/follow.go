package modeltest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Hands are the tool calls by which an agent does what a line says.
type Hands struct {
	Run   func(command string) Call
	Write func(path, text string) Call
	Read  func(path string) Call
	// Refused is the beginning of a tool's result that says that it was not allowed.
	Refused string
}

// Follow is a script that does what its prompt says, line by line, so that a test can steer the agent around it:
//
//	say TEXT            says it
//	long N              says N characters
//	run COMMAND         calls the tool that runs it
//	together A || B     calls it for each of them in one answer
//	write PATH TEXT     calls the tool that writes TEXT and a newline to the file
//	read PATH           calls the tool that reads it, and says the result
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
		case "run":
			calls = []Call{f.hands.Run(rest)}
		case "together":
			for c := range strings.SplitSeq(rest, "||") {
				calls = append(calls, f.hands.Run(strings.TrimSpace(c)))
			}
		case "write":
			path, text, _ := strings.Cut(rest, " ")
			calls = []Call{f.hands.Write(path, text+"\n")}
		case "read":
			calls = []Call{f.hands.Read(rest)}
		case "nonsense":
			return Reply{Calls: []Call{{Name: "no such tool", Arguments: `{"broken`}}}
		default:
			f.say = append(f.say, line)
		}
		if len(calls) > len(f.results) {
			return Reply{Text: strings.Join(f.say, "\n"), Calls: calls[len(f.results):]}
		}
		for range calls {
			f.heard(word)
		}
	}
	if len(f.say) == 0 {
		return Reply{Text: "Done."}
	}
	return Reply{Text: strings.Join(f.say, "\n")}
}

// heard takes the next result. What was said before the call was said with it.
func (f *follower) heard(word string) {
	result := f.results[0]
	f.results = f.results[1:]
	f.say = nil
	if word == "read" || strings.HasPrefix(result, f.hands.Refused) {
		f.say = append(f.say, result)
	}
}
