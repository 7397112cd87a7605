package approvals

import "drawbridge/runner"

// Word says in one word how an approval stands.
type Word string

// The words.
const (
	StandsOpen        Word = "open"         // a person can decide
	StandsHandingOver Word = "handing-over" // allowed, and the host has not yet taken it
	StandsAllowed     Word = "allowed"      // and the runtime was told
	StandsDenied      Word = "denied"
	StandsWithdrawn   Word = "withdrawn" // the agent took it back
	StandsExpired     Word = "expired"   // nobody decided in time
	StandsGone        Word = "gone"      // the agent was gone: nothing ran, also where Decision allowed it
	StandsChanged     Word = "changed"   // the files changed: asked again under another id
)

// Stand is how an approval stands and by whose decision, nil if there is none.
type Stand struct {
	Word     Word
	Decision *Decision
}

// Standing says how an approval stands, from its record and the decision under DecisionKey (nil if there is none). It is
// the only place that combines the two. Allowed means that the host has confirmed it; what was allowed and never reached
// the agent is Gone.
func Standing(r Record, d *Decision) Stand {
	switch r.State {
	case Handed:
		if r.Decision != nil {
			d = r.Decision
		}
		if d != nil && d.Decision == runner.Allowed {
			return Stand{StandsAllowed, d}
		}
		return Stand{StandsDenied, d}
	case Changed:
		return Stand{StandsChanged, d}
	case Open, Closing, Withdrawn, Expired, Lost:
	}
	if r.Deferred() && !r.Kept && r.State == Open && d != nil && d.Decision == runner.Allowed {
		return Stand{StandsAllowed, d} // nobody has to take it
	}
	living := r.State == Open || r.State == Closing
	switch {
	case d != nil && d.Source == runner.SourceShutdown:
		return Stand{StandsGone, d}
	case d != nil && d.Source == runner.SourceTimeout:
		return Stand{StandsExpired, d}
	case d != nil && d.Decision != runner.Allowed:
		return Stand{StandsDenied, d}
	case d != nil && living && d.Gone.IsZero():
		return Stand{StandsHandingOver, d}
	case d != nil:
		return Stand{StandsGone, d}
	case r.State == Open:
		return Stand{StandsOpen, nil}
	case r.State == Withdrawn:
		return Stand{StandsWithdrawn, nil}
	case r.State == Closing, r.State == Expired:
		return Stand{StandsExpired, nil}
	}
	return Stand{StandsGone, nil}
}
