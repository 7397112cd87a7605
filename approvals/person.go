package approvals

// Role is what a listed person may do.
type Role string

// The roles. Any other value may do nothing.
const (
	Owner    Role = "owner"    // everything, also what lasts: grants for a project, groups, people
	Operator Role = "operator" // prompts and decides
	Viewer   Role = "viewer"   // reads
)

// CanPrompt reports whether the role may write prompts to the agent.
func (r Role) CanPrompt() bool { return r == Owner || r == Operator }

// CanTap reports whether the role may decide approvals.
func (r Role) CanTap() bool { return r == Owner || r == Operator }

// IsOwner reports whether the role may give what lasts beyond a session.
func (r Role) IsOwner() bool { return r == Owner }

// Person is somebody who taps: their Telegram user id, the name as others see it, and their role as it is at this moment.
type Person struct {
	ID   int64
	Name string
	Role Role
}
