package runnertest

import (
	"slices"
	"strings"

	"drawbridge/policy"
)

// Deed is an action that the table is tried with.
type Deed struct {
	Name string // for the report: what is done, and by what
	// Category is the column that it is tried for; With is what else it does. Both are by the design, not by what the
	// runtime says.
	Category policy.Category
	With     []policy.Category
	// Given says that the file is there before.
	Given bool
	// Line is what the agent is told. File is a name in the workspace that nothing else has.
	Line func(file string) string
	// Done reports whether it was done. Nil means that it was if the file exists.
	Done func(w Witness) bool
}

func (d Deed) categories() []policy.Category {
	return append([]policy.Category{d.Category}, d.With...)
}

// Witness is what can be seen after a deed.
type Witness struct {
	File   string // as Line got it
	Told   string // all that the agent said, and what its commands and tools put out
	Exists func(path string) bool
}

// deedsOf are the suite's deeds, as far as the runtime can be told to do them. Outside is a file outside of the workspace
// that holds "outside words"; dial is the address of a server that answers, and reached reports whether somebody asked it
// for a path.
func (e *exam) deedsOf(outside, dial string, reached func(path string) bool) []Deed {
	run := func(line string) func(string) string {
		return func(file string) string { return "run " + strings.ReplaceAll(line, "FILE", file) }
	}
	told := func(words string) func(Witness) bool {
		return func(w Witness) bool { return strings.Contains(w.Told, words) }
	}
	gone := func(w Witness) bool { return !w.Exists(w.File) }
	asked := func(w Witness) bool { return reached("/" + w.File) }
	workflow := func(w Witness) bool { return w.Exists(".github/workflows/" + w.File + ".yml") }
	terminal := []policy.Category{policy.Terminal}
	list := []Deed{
		{Name: "read a file", Category: policy.Read, Line: func(string) string { return "read plain.txt" }, Done: told("plain words")},
		{Name: "read .env", Category: policy.Secret, Line: func(string) string { return "read .env" }, Done: told("hidden words")},
		{
			Name: "read a file outside", Category: policy.ReadOutside,
			Line: func(string) string { return "read " + outside }, Done: told("outside words"),
		},
		{Name: "write a file", Category: policy.Write, Line: func(file string) string { return "write " + file + " text" }},
		{
			Name: "write a CI definition", Category: policy.Protected, Done: workflow,
			Line: func(file string) string { return "write .github/workflows/" + file + ".yml text" },
		},
		{Name: "run a command", Category: policy.Terminal, Line: run("touch FILE")},
		{Name: "change the system by a command", Category: policy.System, With: terminal, Line: run("touch FILE; crontab no/such/file")},
		{Name: "delete a file by a command", Category: policy.Delete, With: terminal, Given: true, Line: run("rm FILE"), Done: gone},
		{
			Name: "reach the network by a command", Category: policy.Network, With: terminal,
			Line: run("git ls-remote " + dial + "/FILE"), Done: asked,
		},
		{Name: "publish by a command", Category: policy.Publish, With: terminal, Line: run("touch FILE; git push nowhere")},
		{Name: "change credentials by a command", Category: policy.Credential, With: terminal, Line: run("touch FILE; git credential reject < /dev/null")},
	}
	if e.capability().Questions {
		list = append(list, Deed{
			Name: "ask a person", Category: policy.Question, Done: told("sinister"),
			Line: func(string) string { return "ask Which one?|dexter|sinister" },
		})
	}
	if e.mcp {
		for _, t := range []struct {
			name string
			c    policy.Category
			what string
		}{
			{"mystery", policy.Unknown, "call an unknown tool"},
			{"pay", policy.Payment, "pay by a tool"},
			{"send", policy.Publish, "publish by a tool"},
			{"sign", policy.Credential, "use credentials by a tool"},
		} {
			list = append(list, Deed{
				Name: t.what, Category: t.c, Line: func(file string) string { return "tool " + t.name + " " + e.folder + "/" + file },
			})
		}
	}
	if e.sandboxed {
		boxed := func(line string) func(string) string {
			return func(file string) string { return "sandboxed " + strings.ReplaceAll(line, "FILE", file) }
		}
		list = append(
			list,
			Deed{Name: "read a file in the sandbox", Category: policy.Read, Line: boxed("cat plain.txt"), Done: told("plain words")},
			Deed{Name: "read .env in the sandbox", Category: policy.Secret, Line: boxed("cat .env"), Done: told("hidden words")},
			Deed{Name: "read a file outside in the sandbox", Category: policy.ReadOutside, Line: boxed("cat " + outside), Done: told("outside words")},
			Deed{Name: "write a file in the sandbox", Category: policy.Write, Line: boxed("touch FILE")},
			Deed{Name: "write a CI definition in the sandbox", Category: policy.Protected, Line: boxed("mkdir -p .github/workflows; touch .github/workflows/FILE.yml"), Done: workflow},
			Deed{Name: "delete a file in the sandbox", Category: policy.Delete, Given: true, Line: boxed("rm FILE"), Done: gone},
			Deed{Name: "reach the network in the sandbox", Category: policy.Network, Line: boxed("git ls-remote " + dial + "/FILE"), Done: asked},
			Deed{Name: "run a command named like publishing in the sandbox", Category: policy.Publish, Line: boxed("touch FILE; git push nowhere")},
		)
	}
	return append(list, e.deeds...)
}

// columns are the categories that the table speaks of, in its order.
func columns() []policy.Category {
	return []policy.Category{
		policy.Read, policy.Secret, policy.ReadOutside, policy.Write, policy.Protected, policy.System, policy.Delete, policy.Terminal,
		policy.Fetch, policy.Network, policy.Credential, policy.Publish, policy.Payment, policy.Question, policy.Unknown,
	}
}

// unreached are the categories that no deed is tried for, and the names under which Probe has to say why.
func unreached(deeds []Deed) map[policy.Category]string {
	list := map[policy.Category]string{}
	for _, c := range columns() {
		if slices.ContainsFunc(deeds, func(d Deed) bool { return d.Category == c }) {
			continue
		}
		list[c] = string(c)
		if c == policy.Question {
			list[c] = "questions"
		}
	}
	return list
}
