# make demo            Drawbridge in this terminal: no token, no network, nothing to install
# make test            everything that must hold before a commit; brings what it needs on Debian
# make test-runtimes   the suite on the real Codex and Claude Code, which it installs with npm, outside of the clone
#
# The other targets are parts of these, or take longer than a commit should wait.

GO   ?= go
# All that is compiled without the race detector is compiled in one way, the one that is delivered, so that the build cache
# needs each package once.
PLAIN := CGO_ENABLED=0 GOFLAGS="$(strip $(GOFLAGS) -trimpath)"
TOOL  := $(PLAIN) $(GO) tool -modfile=tools/go.mod

# What lint, race, bench and fuzz look at; make race PKG=./policy/... while working on one room.
PKG          ?= ./...
# Lets a hanging test say where it hangs before whoever waits loses patience.
TEST_TIMEOUT ?= 7m
FUZZ_TIME    ?= 10s
BENCH        ?= .
BENCH_TIME   ?= 1s

.PHONY: demo test test-runtimes never need fmt fix fmt-check lint vet build race model cover bench fuzz clean
.NOTPARALLEL:

demo:
	$(GO) run ./cmd/drawbridge demo

test: need fmt-check build lint vet race model

# The real programs against scripted models on loopback, with invented keys. What they may do on this machine is what a
# sandbox of theirs permits, so a machine without user namespaces fails here. It runs the tests of the files with the build
# tag runtimes, and no other: those are a part of race. One package at a time: its tests keep two cores busy.
RUNTIMES         := ./runner/codex ./runner/claude ./test/e2e
RUNTIMES_TIMEOUT ?= 20m
test-runtimes:
	@tools/need npm cc
	@bin=$$(test/runtimes/install) && export DRAWBRIDGE_TEST_RUNTIMES=$$bin && \
		tests=$$(grep -l '^//go:build runtimes$$' $(addsuffix /*_test.go,$(RUNTIMES)) | \
			xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/p' | paste -sd '|') && test -n "$$tests" && \
		$(GO) test -tags runtimes -race -vet=off -timeout=$(RUNTIMES_TIMEOUT) -p=1 -run "^($$tests)$$" $(RUNTIMES)

# 300 random steps of tasks on the built program, the native agent and both real ones: three minutes, on demand. It says its seed.
NEVER_STEPS ?= 300
never:
	@tools/need redis-server npm cc
	@bin=$$(test/runtimes/install) && export DRAWBRIDGE_TEST_RUNTIMES=$$bin && \
		$(GO) test -tags 'runtimes never' -race -v -timeout=$(RUNTIMES_TIMEOUT) -run=^TestRealAgentsNeverPastTheMode$$ ./test/e2e -never.steps=$(NEVER_STEPS)

# What the tests need beside Go and git: Redis, which they start themselves, and a C compiler for the race detector.
need:
	@tools/need redis-server cc

fmt:
	$(TOOL) gofumpt -w .

# What the linter can repair by itself.
fix:
	$(TOOL) golangci-lint run --fix $(PKG)

fmt-check:
	@files=$$($(TOOL) gofumpt -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run make fmt:"; echo "$$files"; exit 1; fi

# A test may sleep for seconds only where they cost nothing. The linter cannot see whose clock it is; the imports tell.
lint:
	$(TOOL) golangci-lint run $(PKG)
	@files=$$(grep -rlE --include='*_test.go' 'time\.Sleep\(.*time\.(Second|Minute|Hour|Until)' . | xargs -r grep -L '"testing/synctest"'); \
	if [ -n "$$files" ]; then echo "sleeps in real time:"; echo "$$files"; exit 1; fi

vet:
	$(PLAIN) $(GO) vet -tags 'runtimes never' ./...
	$(PLAIN) GOOS=darwin GOARCH=arm64 $(GO) vet ./...

# Stripped and without paths of the machine that built it.
build:
	$(PLAIN) $(GO) build -ldflags='-s -w' -o bin/drawbridge ./cmd/drawbridge

# What go test would vet by itself is a part of vet.
race:
	$(GO) test -race -vet=off -timeout=$(TEST_TIMEOUT) $(PKG)

# The model of tasks at its full length, without the race detector, with which race runs a short one. It says its seed.
MODEL_STEPS ?= 100000
model:
	GOGC=400 $(PLAIN) $(GO) test -vet=off -timeout=$(TEST_TIMEOUT) -v -run='^TestNeverPastTheMode$$' ./bridge/task -model.steps=$(MODEL_STEPS)

cover: need
	@mkdir -p bin
	$(GO) test -timeout=$(TEST_TIMEOUT) -coverpkg=./... -coverprofile=bin/cover.out ./...
	$(GO) tool cover -func=bin/cover.out | tail -1
	$(GO) tool cover -html=bin/cover.out -o bin/cover.html

# One package at a time, so that they do not measure each other. Ends with a table of what was measured and what is wanted;
# a missed target fails nothing. See docs/performance.md.
bench: need build
	@$(GO) run ./test/bench/report $(GO) test -p=1 -run='^$$' -bench='$(BENCH)' -benchtime=$(BENCH_TIME) -benchmem $(PKG)

# Each fuzz target for FUZZ_TIME; what it finds lands in the package's testdata/fuzz and fails every later test run.
fuzz:
	@set -e; for pkg in $$($(GO) list $(PKG)); do \
		for name in $$($(GO) test -list='^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$name"; \
			$(GO) test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZ_TIME) $$pkg; \
		done; \
	done

clean:
	rm -rf bin
