package claude

import (
	"context"
	"fmt"

	"drawbridge/policy"
	"drawbridge/runner"
)

// nativeMode is the program's mode that a process is started in. mu need not be held.
func (s *session) nativeMode(p runner.Policy) string {
	if p.Interaction != policy.Default {
		return modePlan
	}
	return modeDefault
}

// align brings the program's mode in line with what the chat allows. It is called before each turn; what the chat
// decides in the middle of one is the gate's to hold to, which it does whatever the program's mode is.
func (c *conn) align(ctx context.Context) error {
	s := c.session
	p := s.allowed()
	want := s.nativeMode(p)
	why := ""
	if want == modeDefault && p.Mode == policy.Auto && s.runtime.config.Reviewer {
		if why = c.reviewable(ctx); why == "" {
			want = modeAuto
		}
	}
	err := c.setMode(ctx, want)
	if err != nil && want == modeAuto {
		why = "the program refuses its mode auto: " + err.Error()
		err = c.setMode(ctx, modeDefault)
	}
	if err != nil {
		return err
	}
	if why != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.loseReviewer(p, why)
	}
	return nil
}

// setMode asks for a mode of the program and makes sure that it is in force.
func (c *conn) setMode(ctx context.Context, mode string) error {
	s := c.session
	s.mu.Lock()
	now := c.mode
	c.aligning = mode
	s.mu.Unlock()
	if now == mode {
		return nil
	}
	var reply struct {
		Mode string `json:"mode"`
	}
	if err := c.peer.Call(ctx, "set_permission_mode", map[string]string{"mode": mode}, &reply); err != nil {
		return fmt.Errorf("claude: set mode %s: %w", mode, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mode = reply.Mode
	if reply.Mode != mode {
		return fmt.Errorf("claude: set mode %s: the program is in mode %q", mode, reply.Mode)
	}
	return nil
}

// moded takes what the program says of its mode. One that it was not asked for ends the turn, and the process where none
// runs, since the program may be in a turn that it began by itself: a looser mode would leave the hook alone between the
// agent and the machine. mu is held.
func (c *conn) moded(mode string) {
	if mode == "" || mode == c.mode {
		return
	}
	c.mode = mode
	if !loosens(mode) && (mode == c.aligning || mode != modeAuto) {
		return
	}
	c.session.logger.Warn("program changed its mode by itself", "runtime", c.session.runtime.config.Name, "mode", mode)
	if c.current() == nil && c.greeted {
		c.notice("The program went into its mode " + mode + " by itself, so it was ended. The next prompt starts it anew.")
		c.running.Go(c.kill)
		return
	}
	c.fail("The program went into its mode " + mode + " by itself, so the turn was ended.")
}

// fail ends the running turn, with the reason. mu is held.
func (c *conn) fail(reason string) {
	t := c.current()
	if t == nil {
		return
	}
	select {
	case t.abort <- reason:
	default: // it is ending
	}
}
