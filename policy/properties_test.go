package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"
)

func TestASandboxThatWorksStandsInPlaceOfTerminalOnly(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	for _, e := range expectations(t, "sandboxed.txt") {
		in := in
		profile := strings.TrimSuffix(string(e.want[slices.IndexFunc(e.want, func(c Category) bool { return strings.HasSuffix(string(c), ":") })]), ":")
		want := slices.DeleteFunc(e.want, func(c Category) bool { return strings.HasSuffix(string(c), ":") })
		in.Sandbox = Sandbox(profile)
		if got := Classify(e.what, in); !slices.Equal(got, want) {
			t.Errorf("%s: %s\n got %v\nwant %v", profile, e.what, got, want)
		}
	}
}

func TestPublishingThatIsOrdinaryIsNetworkAndTerminal(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	in.PublishIsOrdinary = true
	for command, want := range map[string][]Category{
		"git push":    {Network, Terminal},
		"npm publish": {Network, Terminal},
		"npm login":   {Credential, Terminal},
	} {
		if got := Classify(command, in); !slices.Equal(got, want) {
			t.Errorf("%s = %v, want %v", command, got, want)
		}
	}
	in.Sandbox = SandboxWorkspace
	if got := Classify("git push", in); !slices.Equal(got, []Category{Network, Terminal, Write}) {
		t.Errorf("in a sandbox: %v", got)
	}
}

// knownLines are the commands of the tables.
func knownLines(t *testing.T) []string {
	var out []string
	for _, file := range []string{"ordinary.txt", "slips-wrapped.txt", "slips-hidden.txt", "slips-paths.txt"} {
		for _, e := range expectations(t, file) {
			out = append(out, e.what)
		}
	}
	return out
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// wrappings put a whole line into another command.
func wrappings() map[string]func(string) string {
	return map[string]func(string) string{
		"sh":           func(c string) string { return "sh -c " + quote(c) },
		"bash":         func(c string) string { return "bash -lc " + quote(c) },
		"env":          func(c string) string { return "env A=b sh -c " + quote(c) },
		"timeout":      func(c string) string { return "timeout -k 5 10 bash -c " + quote(c) },
		"sudo":         func(c string) string { return "sudo -u bob sh -c " + quote(c) },
		"nice":         func(c string) string { return "nice -n 3 sh -c " + quote(c) },
		"nohup":        func(c string) string { return "nohup sh -c " + quote(c) + " &" },
		"xargs":        func(c string) string { return "ls | xargs -n 1 sh -c " + quote(c) },
		"find":         func(c string) string { return "find . -exec sh -c " + quote(c) + ` \;` },
		"eval":         func(c string) string { return "eval " + quote(c) },
		"trap":         func(c string) string { return "trap " + quote(c) + " EXIT" },
		"watch":        func(c string) string { return "watch -n 1 " + quote(c) },
		"git":          func(c string) string { return "git -c core.pager=" + quote(c) + " log" },
		"git bisect":   func(c string) string { return "git bisect run sh -c " + quote(c) },
		"go test":      func(c string) string { return "go test -exec " + quote(c) + " ./..." },
		"ssh":          func(c string) string { return "ssh host " + quote(c) },
		"after":        func(c string) string { return "true && " + c },
		"newline":      func(c string) string { return "true\n" + c },
		"pipe":         func(c string) string { return "true | " + c },
		"group":        func(c string) string { return "{ " + c + "\n}" },
		"subshell":     func(c string) string { return "( " + c + "\n)" },
		"function":     func(c string) string { return "f() { " + c + "\n}; f" },
		"loop":         func(c string) string { return "while true; do " + c + "\ndone" },
		"substitution": func(c string) string { return "echo \"$( " + c + "\n)\"" },
		"process":      func(c string) string { return "cat <( " + c + "\n)" },
		"here":         func(c string) string { return "bash <<'END_OF_LINE'\n" + c + "\nEND_OF_LINE" },
		"alias":        func(c string) string { return "alias zz=" + quote(c) + "; zz" },
		"unparsed":     func(c string) string { return c + "\n'" },
	}
}

// fits reports whether the line in the wrapping is still the same line: one that can't be parsed is another one without
// quotes around it, and "<(" is nothing that a POSIX shell would read.
func fits(name, c string) bool {
	switch name {
	case "after", "newline", "pipe", "group", "subshell", "function", "loop", "substitution", "here", "unparsed":
		return parses(c)
	case "process":
		return parses(c) && !strings.Contains(c, `$'\'`)
	}
	return true
}

// lost returns what of a line's categories is not among those of the line in a wrapping. Where a wrapping makes the line
// one that can't be parsed, or is known at run time only, Unknown and Terminal stand for what its paths were.
func lost(inner, outer []Category) []Category {
	blind := slices.Contains(outer, Unknown) && !slices.Contains(inner, Unknown)
	return slices.DeleteFunc(slices.Clone(inner), func(c Category) bool {
		return slices.Contains(outer, c) || blind && (c == Write || c == Protected || c == ReadOutside)
	})
}

func TestWrappingNeverLosesACategory(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	wraps := wrappings()
	order := slices.Sorted(maps.Keys(wraps))
	for i, c := range knownLines(t) {
		inner := Classify(c, in)
		for j, name := range order {
			// Each line in some wrappings and each wrapping around many lines; all of both would take a minute.
			if wrap := wraps[name]; (i+j)%6 == 0 && fits(name, c) {
				if missing := lost(inner, Classify(wrap(c), in)); len(missing) > 0 {
					t.Errorf("%s loses %v: %s", name, missing, wrap(c))
				}
			}
		}
	}
}

func TestWrappingTwiceNeverLosesACategory(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	lines, wraps := knownLines(t), wrappings()
	order := slices.Sorted(maps.Keys(wraps))
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(lines).Draw(t, "line")
		inner := Classify(c, in)
		for range 2 {
			if name := rapid.SampledFrom(order).Draw(t, "wrapping"); fits(name, c) {
				c = wraps[name](c)
			}
		}
		if missing := lost(inner, Classify(c, in)); len(missing) > 0 {
			t.Fatalf("loses %v: %s", missing, c)
		}
	})
}

// TestHereDocumentsThatNothingEnds are read to the end of the text, as a shell does.
func TestHereDocumentsThatNothingEnds(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	for _, command := range []string{"bash <<EOF\ngo get example.org/x", "sh <<-'E X'\n\tgit push", "cat <<A; bash <<B\nx\nA\ngo get example.org/x"} {
		got := Classify(command, in)
		if !slices.Contains(got, Network) || !slices.Contains(got, Unknown) || Grantable(command, in) {
			t.Errorf("%q = %v", command, got)
		}
	}
}

var assigned = regexp.MustCompile(`\b([A-Za-z_]\w*):?=`)

// gives tells whether a line assigns a variable that another one uses: joined, the other one says more than alone.
func gives(one, other string) bool {
	for _, name := range assigned.FindAllStringSubmatch(one, -1) {
		if regexp.MustCompile(`\$\{?` + name[1] + `\b`).MatchString(other) {
			return true
		}
	}
	return false
}

func TestJoiningLinesNeverLosesACategory(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	lines := slices.DeleteFunc(knownLines(t), func(c string) bool { return !parses(c) })
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SampledFrom(lines).Draw(t, "first"), rapid.SampledFrom(lines).Draw(t, "second")
		if a != b && (gives(a, b) || gives(b, a)) {
			return // what one line leaves open is known from the other
		}
		both := Classify(a+"\n"+b, in)
		for _, one := range []string{a, b} {
			if missing := lost(Classify(one, in), both); len(missing) > 0 {
				t.Fatalf("%q loses %v of %q", a+"\n"+b, missing, one)
			}
		}
	})
}

// wellFormed checks what is true of every classification.
func wellFormed(t interface{ Fatalf(string, ...any) }, what string, got []Category) {
	if len(got) == 0 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Fatalf("%q = %v", what, got)
	}
}

func TestAnyBytesAreClassified(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	piece := rapid.SampledFrom(strings.Fields(`git push rm -rf sh -c ' " ; | & && || ( ) { } $ $( ) ` + "`" + ` << >> > < # \ * ? [ ] ~ = ! /etc/x .env $X ${X} ${X:-y} $((1)) <( <<< if then fi for in do done case esac while f() eval env xargs find -exec {} \; + , @ : % \x00 é`))
	rapid.Check(t, func(t *rapid.T) {
		command := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "glue"))
		for _, s := range []Sandbox{NoSandbox, SandboxReadOnly, SandboxWorkspace} {
			in := in
			in.Sandbox = s
			got := Classify(command, in)
			wellFormed(t, command, got)
			if (s == NoSandbox || !parses(command)) && !slices.Contains(got, Terminal) {
				t.Fatalf("%q in sandbox %q = %v", command, s, got)
			}
			if !parses(command) && (!slices.Contains(got, Unknown) || Grantable(command, in)) {
				t.Fatalf("%q can't be parsed and is %v", command, got)
			}
		}
		if p, ok := Prefix(command); ok && !Grantable(command, in) {
			t.Fatalf("%q can be granted as %q but not whole", command, p)
		}
	})
}

func TestNestingAndLengthHaveLimits(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	for _, s := range []string{"(", "{ ", "$(", "`", "! ", "if ", "((", "[[ ( ", "${a:-", "a|", "time ", "$((", "{a,", "env ", "sudo ", "eval ", "xargs ", "<(", "a=$a$a;", "cd x;", "$a", "sh -c "} {
		for _, n := range []int{100, maxCommand / 8, maxCommand + 100} {
			got := Classify(strings.Repeat(s, n/len(s)+1), in)
			wellFormed(t, s, got)
			if n > maxCommand && !slices.Contains(got, Unknown) {
				t.Errorf("a line of %d bytes of %q is %v", n, s, got)
			}
		}
	}
	deep := "git push"
	for range 2 * maxNesting {
		deep = "sh -c " + `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(deep) + `"`
		if len(deep) > maxCommand {
			break
		}
		if got := Classify(deep, in); !slices.Contains(got, Publish) && !slices.Contains(got, Unknown) {
			t.Fatalf("%d bytes of nesting are %v", len(deep), got)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, s := range []string{"", "ls", "git push", "sh -c 'git push'", "X=git; $X push", "cat <<E\n$(rm x)\nE\n", "a() { b; }; a", "find . -exec rm {} +", "echo ${X:-$(ls)}", "{a,b}", "'", "$'\\x00'", "\x00", "sed s/a/b/e", "python -c 'x'"} {
		f.Add(s)
	}
	in := Workspace{Root: "/nowhere/project", Home: "/nowhere/home"}
	f.Fuzz(func(t *testing.T, command string) {
		wellFormed(t, command, Classify(command, in))
		if _, ok := Prefix(command); ok && !Grantable(command, in) {
			t.Fatalf("%q has a prefix and can't be granted", command)
		}
	})
}

func FuzzClassifyPath(f *testing.F) {
	for _, s := range []string{"", "a", "../a", "~/a", "/etc/passwd", ".env", "a\x00b", ".g\u200cit/config", strings.Repeat("../", 100), "~", "~x", "//", "/."} {
		f.Add("read", s)
		f.Add("write", s)
	}
	in := Workspace{Root: "/nowhere/project", Home: "/nowhere/home"}
	f.Fuzz(func(t *testing.T, op, path string) {
		got := ClassifyPath(Op(op), path, in)
		wellFormed(t, path, got)
		if Op(op) == OpWrite && slices.Contains(got, Write) && (strings.HasPrefix(path, "~") || strings.Contains("/"+strings.ToLower(path)+"/", "/.git/")) {
			t.Fatalf("writing %q is %v", path, got)
		}
		if !utf8.ValidString(path) && len(got) == 0 {
			t.Fatalf("%q is nothing", path)
		}
	})
}

// parses reports whether a command can be parsed, as bash and within the limits of length and nesting.
func parses(command string) bool {
	_, err := parse(command, syntax.LangBash)
	return err == nil
}
