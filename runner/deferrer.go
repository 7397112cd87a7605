package runner

import "context"

// Deferrer is a Session whose program can keep one call that waits for a person beyond the end of its process, and asks
// for it again by itself in a session that is resumed. It is an ability, found by assertion.
//
// When the host has to stop, it calls Defer, and the gate answers the question that was named with Deferred. The turn ends
// then, and Result.Deferred says which call the program has kept, if it has. After the restart the first process of the
// resumed session asks the gate for that call again, with the same Question.Item, before anything else: within TakeUp, or
// within whatever turn comes first.
type Deferrer interface {
	// Defer names the open question of the running turn, by its Item, that can be kept; empty if there is none. From then
	// on the session asks nothing new: what it would ask is denied. The other open questions are withdrawn.
	Defer() string
	// TakeUp is a turn without a prompt, in a session that was resumed: it goes on with the call that was kept. Text and
	// Files of in are not sent. A program that does not ask for the call again has lost it; that is a Result with Broken.
	TakeUp(ctx context.Context, in Input) (Result, error)
}
