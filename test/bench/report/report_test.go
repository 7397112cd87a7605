package main

import (
	"strings"
	"testing"
)

const output = `goos: linux
goarch: amd64
pkg: drawbridge/formatting
cpu: A Processor
BenchmarkRender64K-2        	     298	   4026164 ns/op	  16.28 MB/s	 2093448 B/op	   26166 allocs/op
BenchmarkStream/answer/16K-2	     100	   1000000 ns/op	  16.00 MB/s
BenchmarkStream/answer/256K 	     100	 256000000 ns/op	   1.00 MB/s
PASS
ok  	drawbridge/formatting	12.1s
?   	drawbridge/policy	[no test files]
pkg: drawbridge/test/bench
BenchmarkTap/bolt-2	       1	14343674487 ns/op	 4.0 ack-p50-ms	 5.0 p50-ms	 18.8 p99-ms
BenchmarkTap/bolt-2	       1	14343674487 ns/op	 4.0 ack-p50-ms	 4.0 p50-ms	 18.8 p99-ms
BenchmarkTap/bolt-2	       1	14343674487 ns/op	 4.0 ack-p50-ms	 9.0 p50-ms	 25.0 p99-ms
--- FAIL: BenchmarkReady/redis
    serve_test.go:20: a reason
`

func TestTable(t *testing.T) {
	t.Parallel()
	var passed strings.Builder
	found, err := follow(strings.NewReader(output), &passed)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nformatting\nBenchmarkRender64K", "\ntest/bench\nBenchmarkTap", "    serve_test.go:20: a reason\n"} {
		if !strings.Contains(passed.String(), want) {
			t.Errorf("%q is missing in what was passed on:\n%s", want, passed.String())
		}
	}
	if strings.Contains(passed.String(), "no test files") {
		t.Errorf("a package without benchmarks is shown:\n%s", passed.String())
	}
	want := `what                                                              measured  target     
a tap leaves the Bot API, Ask returns: median, embedded           5 ms      < 5 ms     MISSED
a tap leaves the Bot API, Ask returns: 99th percentile, embedded  18.8 ms   < 25 ms    met
a tap leaves the Bot API, its answer arrives: median, embedded    4 ms      -          
64 KB answer, rendered and split                                  4.03 ms   < 10 ms    met
streamed answer, a byte of 256 KB against one of 16 KB            16 times  < 2 times  MISSED
`
	if got := table(found, targets()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if found.cpu != "A Processor" {
		t.Errorf("the processor is %q", found.cpu)
	}
}

func TestExitsAsTheCommandDoes(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]int{"true": 0, "false": 1, "/no/such/program": 1} {
		var out strings.Builder
		if got := run(t.Context(), []string{command}, &out, &out); got != want {
			t.Errorf("%s: exit %d, want %d\n%s", command, got, want, out.String())
		}
	}
	if got := run(t.Context(), nil, &strings.Builder{}, &strings.Builder{}); got != 2 {
		t.Errorf("no command: exit %d, want 2", got)
	}
}
