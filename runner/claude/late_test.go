package claude_test

import (
	"context"
	"testing"

	"drawbridge/runner"
	"drawbridge/runner/claude"
)

// TestWhatBeginsBehindTheInterruptIsStopped has the program begin a command in the background when it was told to stop
// already: that is stopped as well, or the program is ended if it does not do so.
func TestWhatBeginsBehindTheInterruptIsStopped(t *testing.T) {
	t.Parallel()
	const (
		interrupted = `{"dir":"out","frame":{"type":"control_request","request_id":"request-stop","request":{"subtype":"interrupt"}}}
{"dir":"in","frame":{"type":"system","subtype":"task_started","task_id":"late","description":"sleep","is_backgrounded":true}}
` + stopping + `{"dir":"out","frame":{"type":"control_request","request_id":"request-task","request":{"subtype":"stop_task"}}}
`
		taken = `{"dir":"in","frame":{"type":"system","subtype":"task_updated","task_id":"late","patch":{"status":"killed"}}}
{"dir":"in","frame":{"type":"control_response","response":{"subtype":"success","request_id":"request-task","response":{}}}}
`
		refused = `{"dir":"in","frame":{"type":"control_response","response":{"subtype":"error","request_id":"request-task","error":"no"}}}
`
	)
	for name, c := range map[string]struct {
		frames string
		gone   bool
	}{
		"it stops it":  {taken + ended0(uuid), false},
		"it does not":  {refused, true},
		"it ends then": {`{"dir":"exit","exit":1,"says":"bye"}` + "\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := faked(t, ready("default")+prompted0(uuid)+interrupted+c.frames, claude.Config{})
			o := begin(t, r, folder(t), asking, yes)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				o.await("the beginning", func(e runner.Event) bool { return e.Kind == runner.SessionStarted })
				cancel()
			}()
			res, err := o.Turn(ctx, runner.Input{Turn: "turn", Text: "go"})
			if err != nil || res.Outcome != runner.Interrupted {
				t.Errorf("result %+v, error %v", res, err)
			}
			if c.gone {
				<-o.gone()
			}
			o.await("its end", func(e runner.Event) bool { return e.Kind == runner.BackgroundEvent && e.Background.Ended })
		})
	}
}
