package policy

import "strings"

// Hints are what a tool's own description says of it (the annotations of MCP). They come from whoever wrote the tool
// and are not to be trusted: they can make a category stricter, never looser. Nil means that nothing is said.
type Hints struct {
	ReadOnly    *bool // false: the tool changes something
	Destructive *bool // true: what it changes may be lost
	OpenWorld   *bool // true: it reaches beyond this machine
}

// tools are the names that the runtimes give their own tools, in lower case and without separators. A tool whose words
// say what it does (a path, a command) is classified by those as well, by whoever holds them.
var tools = rules(`
read: read readfile readmanyfiles viewfile view listdir listdirectory listfiles ls glob grep search searchfiles searchfilecontent codesearch
read: findfiles filesearch todoread updateplan todowrite todos writetodos think plan
write: write writefile createfile edit editfile multiedit notebookedit replace strreplace applypatch patch
delete: delete deletefile removefile
terminal: bash shell exec execcommand run runcommand runshellcommand command terminal powershell
fetch: fetch webfetch
network: websearch googlewebsearch download
question: askuser askuserquestion question askquestion requestuserinput elicit
`)

// ClassifyTool says what a tool does, by its name and by the owner's map. The map is consulted first, for the exact name
// then for "server/tool" however the runtime joins the two, then for "server/*"; what the owner says of a tool stands in
// place of what its name says, but for a tool that is human-only by its name, which stays so. A tool of a server
// ("server/tool", "server__tool", "mcp__server__tool") is never known by its name, whatever it calls itself: "read_file"
// of a foreign server is Unknown. The hints then add what is stricter. A value of the map that is no category counts
// as Unknown.
func ClassifyTool(name string, h Hints, owner map[string]Category) []Category {
	found := set{}
	server, tool, foreign := serverOf(name)
	if c, ok := owner[name]; ok {
		found.add(known(c))
	} else if c, ok := owner[server+"/"+tool]; foreign && ok {
		found.add(known(c))
	} else if c, ok := owner[server+"/*"]; foreign && ok {
		found.add(known(c))
	} else if c := tools[plainName(name)]; !foreign && c != nil {
		found.add(c...)
	} else {
		found.add(Unknown)
	}
	if c := tools[plainName(name)]; !foreign && HumanOnly(c...) {
		found.add(c...)
	}
	if h.ReadOnly != nil && !*h.ReadOnly {
		found.add(Write)
	}
	if h.Destructive != nil && *h.Destructive {
		found.add(Delete)
	}
	if h.OpenWorld != nil && *h.OpenWorld {
		found.add(Network)
	}
	if found[Write] || found[Delete] || found[Network] {
		delete(found, Read)
	}
	return found.sorted()
}

// serverOf parts a name into the server it is prefixed with and the tool.
func serverOf(name string) (server, tool string, foreign bool) {
	rest := strings.TrimPrefix(name, "mcp__")
	for _, sep := range []string{"/", "__"} {
		if server, tool, ok := strings.Cut(rest, sep); ok {
			return server, tool, true
		}
	}
	return "", rest, rest != name || strings.ContainsAny(name, ".:")
}

func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

func known(c Category) Category {
	switch c {
	case Read, Secret, ReadOutside, Write, Protected, System, Delete, Terminal, Fetch, Network, Credential, Publish, Payment, Question:
		return c
	case Unknown:
	}
	return Unknown
}
