package policy

import "testing"

func TestPrefixesComeFromAFixedListOnly(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"go test":                           "go test",
		"go test ./...":                     "go test",
		"go  test   ./...":                  "go test",
		"go test -race -count=1 ./policy":   "go test",
		"go test -run 'TestX/a b' -v ./...": "go test",
		"go test -run '^TestX$' .":          "go test",
		`go test -run "TestX" .`:            "go test",
		"go test -timeout 30s ./...":        "go test",
		"go build ./...":                    "go build",
		"go vet ./cmd/...":                  "go vet",
		"gofmt -l .":                        "gofmt",
		"npm test":                          "npm test",
		"npm run lint":                      "npm run lint",
		"cargo test --workspace parser":     "cargo test",
		"cargo clippy --all-targets":        "cargo clippy",
		"pytest -q tests/test_a.py::TestX":  "pytest",
		"pytest -k 'a and not b'":           "pytest",
		"python -m pytest -x":               "python -m pytest",
		"make test":                         "make test",
		"git status":                        "git status",
		"git status --short --branch":       "git status",
		"git diff":                          "git diff",
		"git diff --stat HEAD~1":            "git diff",
		"git diff main..dev -- src/a.go":    "git diff",
		"git log --oneline -5":              "git log",
		"git log --format='%h %s' main":     "git log",
		"git show HEAD:main.go":             "git show",
		"git branch -a":                     "git branch",
		"ls":                                "ls",
		"ls -la src":                        "ls",
		"pwd":                               "pwd",
	} {
		if got, ok := Prefix(command); got != want || !ok {
			t.Errorf("Prefix(%q) = %q, %t, want %q", command, got, ok, want)
		}
		if !Covers(want, command) {
			t.Errorf("%q does not cover %q", want, command)
		}
	}
}

// Each line would turn a grant of a harmless prefix into something else.
func TestNoPrefixWithWhatRunsOrWritesElsewhere(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"", " ", "go", "npm", "git", "cargo", "make", "rm x", "cat a.txt", "grep -r x .", "python script.py", "sh -c ls", "curl x",
		// Programs run by options.
		"go test -exec ./x ./...", "go test -exec=./x ./...", "go test --exec=./x ./...", "go test '-exec' ./x", `go test "-exec=./x"`,
		"go test -toolexec ./x", "go test -toolexec=./x", "go build -toolexec=./x ./...", "go vet -vettool=./x ./...",
		"go test -ldflags=-extld=./x ./...", "go test -gcflags=x", "go build -overlay=x.json", "go test -modfile=x.mod", "go test -mod=mod ./...",
		"go build -compiler=gccgo -gccgoflags=x", "go test -C /tmp ./...", "go -C /tmp test", "go test -run -exec ./...",
		"npm test --script-shell=./x", "npm --prefix /x test", "npm test -- --config=/x", "npm run evil", "npm run test:evil",
		"cargo test --config x", "cargo +nightly test", "cargo test --manifest-path=/x/Cargo.toml", "cargo test --target-dir=/x", "cargo clippy --fix",
		"cargo test -Z unstable", "cargo test -- --logfile=/x",
		"pytest -p evil", "pytest -c /x", "pytest --rootdir=/x", "pytest -o x=y", "pytest --basetemp=src", "pytest --junitxml=x", "pytest --pdb",
		"python -c 1", "python -m http.server", "python -m pytest -p x",
		"make test SHELL=./x", "make -f /x test", "make test -C /x", "make --eval=x test", "make test clean",
		"mvn test -Dx=y", "gradle test -I x", "bun test --preload ./x",
		"git -c core.fsmonitor=./x status", "git -C / status", "git --git-dir=x status", "git --exec-path=x status", "git diff --ext-diff",
		"git diff --output=x", "git diff --outp=x", "git log --output=main.go", "git log -p --ext-diff", "git diff --no-index a b", "git diff -Ox", "git grep -O./x x",
		"git log --textconv", "git show --show-signature", "git branch -D x", "git branch new", "git branch -m x", "git show --output=x",
		// Files elsewhere.
		"go test -o /x ./...", "go test -o x ./...", "go test -coverprofile=main.go ./...", "go test -cpuprofile x", "go test -outputdir /x", "go test ./... -args -x",
		"go test /x/...", "go test ../x", "go test ./../x", "go vet a/../../x", "go build -o /x", "go test example.org/x@latest", "gofmt -w .", "gofmt -cpuprofile=x .",
		"ls /", "ls ..", "ls src/../..", "ls ~", "ls ~/x", "ls ~bob", "ls -la /etc", "ls -la --color=always ../x", "git diff /etc/passwd /etc/hosts", "git log -- ../x",
		"git show HEAD:.env", "git diff -- .env", "ls .env", "ls config/id_rsa", "git log -p -- server.key",
		// More than one command, or what a shell makes of it.
		"go test ./... > out", "go test ./... 2>&1", "go test < x", "go test <<< x", "go test ./...; rm x", "go test && rm x", "go test || rm x", "go test | tee x",
		"go test &", "go test;", "! go test", "go test\nrm x", "go test\r", "(go test)", "{ go test; }", "if go test; then ls; fi", "time go test",
		"go test $(ls)", "go test `ls`", "go test $X", "go test ${X}", `go test "$X"`, "go test <(ls)", "go test $((1))", "go test *", "go test ./{a,b}", "go test [a]",
		"go test $'-exec'", `go test $"x"`, "X=1 go test", "PATH=. go test", "GOFLAGS=-toolexec=./x go test", "env go test", "sudo go test", "command go test",
		"./go test", "/usr/bin/go test", "GO test", "g\\o test", "go te\\\nst", "go test \\-exec=x", "go test # rm x\nrm y", "=go test", "go test =ls",
		"go test \x00", "go test \u202e", "go test '\u200b'", "go test 'a\nb'", "go test 'unterminated", "go test @x", "go test +x",
		"go test !x", `go test "!x"`, "go test x^y*", "go test ''",
	} {
		if got, ok := Prefix(command); ok || got != "" {
			t.Errorf("Prefix(%q) = %q", command, got)
		}
		for _, g := range grantable {
			if Covers(g.words[0], command) {
				t.Errorf("%q covers %q", g.words[0], command)
			}
		}
	}
}

func TestAPrefixCoversOnlyItself(t *testing.T) {
	t.Parallel()
	for _, e := range [][2]string{
		{"go test", "go build ./..."},
		{"go", "go test ./..."},
		{"", "rm x"},
		{"", ""},
		{"git", "git status"},
		{"go test ./...", "go test ./..."},
		{"git status", "git log"},
		{"npm test", "npm run lint"},
		{"pytest", "python -m pytest"},
	} {
		if Covers(e[0], e[1]) {
			t.Errorf("%q covers %q", e[0], e[1])
		}
	}
}

func TestWhatCanBeGrantedWhole(t *testing.T) {
	t.Parallel()
	in := workspace(t)
	for _, command := range []string{
		"go test ./...", "./run.sh --fast", "npm run dev", "curl https://example.org", "echo hi > a.txt", "cat /etc/hosts", "go test ./... && go vet ./...",
		"for f in a b; do echo $f; done", "sudo systemctl restart nginx", "python3 script.py",
	} {
		if !Grantable(command, in) {
			t.Errorf("%q can't be granted", command)
		}
	}
	for _, command := range []string{
		"rm a.txt", "git clean -fd", "find . -delete", "cat .env", "cat link-env", "git push", "npm publish", "gh auth token", "stripe charges create",
		"echo 'unterminated", "ls ||", ")", "$X", "eval $X", "echo $X", "cat $(ls)", "curl x | sh", "git wip", "sh -c 'rm a'", "env | sort", "", " ", "# only a comment", "\x00",
		"xargs rm", "bash", "python -", "PATH=.:$PATH ls",
	} {
		if Grantable(command, in) {
			t.Errorf("%q can be granted", command)
		}
	}
	in.PublishIsOrdinary = true
	if !Grantable("git push", in) {
		t.Error("publishing that is ordinary can't be granted")
	}
	if Grantable("gh auth token", in) {
		t.Error("credentials are ordinary because publishing is")
	}
}
