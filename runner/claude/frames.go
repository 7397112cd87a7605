package claude

import (
	"encoding/json"
)

// The frames of the program, with the fields that are used. Fields that are missing or new mean nothing.

// frame is any frame that is no control request or response.
type frame struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Session string `json:"session_id"`
	// Parent is the call of the sub-agent that this belongs to; empty for the main conversation.
	Parent string `json:"parent_tool_use_id"`

	Message json.RawMessage `json:"message"` // assistant, user: a message; system/permission_denied: a text
	Event   *streamEvent    `json:"event"`   // stream_event
	Aborted bool            `json:"aborted"` // assistant
	Error   json.RawMessage `json:"error"`   // assistant, api_retry: a word

	ToolResult json.RawMessage `json:"tool_use_result"`  // user
	ToolMeta   []toolMeta      `json:"tool_result_meta"` // user

	Status         json.RawMessage `json:"status"`         // system/status: a word or null; system/task_notification: a word
	PermissionMode string          `json:"permissionMode"` // system/status, system/init
	State          string          `json:"state"`          // system/session_state_changed, command_lifecycle
	Command        string          `json:"command_uuid"`   // command_lifecycle

	Content json.RawMessage `json:"content"` // system/informational: a text
	Tag     string          `json:"tag"`     // system/informational

	Attempt     int  `json:"attempt"` // system/api_retry
	RetryDelay  int  `json:"retry_delay_ms"`
	ErrorStatus *int `json:"error_status"`

	MCP []mcpServer `json:"mcp_servers"` // system/init

	Task        string     `json:"task_id"` // system/task_*
	Tool        string     `json:"tool_use_id"`
	Description string     `json:"description"`
	Background  bool       `json:"is_backgrounded"`
	Patch       *taskPatch `json:"patch"`
	ToolName    string     `json:"tool_name"` // system/permission_denied
	ReasonType  string     `json:"decision_reason_type"`
	ReasonCode  string     `json:"decision_reason_code"`
	Reason      string     `json:"decision_reason"`

	Conversation string `json:"new_conversation_id"` // conversation_reset

	Rate *rateLimit `json:"rate_limit_info"` // rate_limit_event

	result
}

// taskPatch is what changed about a background task.
type taskPatch struct {
	Status     string `json:"status"`
	Background *bool  `json:"is_backgrounded"`
}

// rateLimit is how the subscription's limit stands.
type rateLimit struct {
	Status string `json:"status"` // allowed, allowed_warning, rejected
	Resets int64  `json:"resetsAt"`
}

type toolMeta struct {
	ID           string `json:"id"`
	NonExecution string `json:"non_execution_kind"`
}

type mcpServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// result ends a turn.
type result struct {
	IsError   bool     `json:"is_error"`
	Result    string   `json:"result"`
	Errors    []string `json:"errors"`
	Terminal  string   `json:"terminal_reason"`
	APIStatus *int     `json:"api_error_status"`
	Usage     *usage   `json:"usage"`
	// Cost is that of the whole conversation until now, in US dollars, also of earlier processes of it.
	Cost     float64               `json:"total_cost_usd"`
	Models   map[string]modelUsage `json:"modelUsage"`
	Message0 string                `json:"user_message_uuid"`
	Messages []string              `json:"user_message_uuids"`
	Stopped  bool                  `json:"stopped_by_permission_check"`
	Deferred *deferred             `json:"deferred_tool_use"` // see defer.go
}

type usage struct {
	Input   int64 `json:"input_tokens"`
	Created int64 `json:"cache_creation_input_tokens"`
	Cached  int64 `json:"cache_read_input_tokens"`
	Output  int64 `json:"output_tokens"`
}

// context is how much stood in the context.
func (u usage) context() int64 { return u.Input + u.Created + u.Cached + u.Output }

type modelUsage struct {
	Window int64 `json:"contextWindow"`
	Input  int64 `json:"inputTokens"`
}

// message is what a model or a user said.
type message struct {
	ID      string  `json:"id"`
	Content content `json:"content"`
	Usage   *usage  `json:"usage"`
}

// content is a list of blocks, or a plain text.
type content []block

// UnmarshalJSON takes both forms.
func (c *content) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*c = content{{Type: "text", Text: s}}
		return nil
	}
	return json.Unmarshal(b, (*[]block)(c))
}

// text is all the text of it.
func (c content) text() string {
	var s string
	for _, b := range c {
		switch b.Type {
		case "text":
			if s != "" {
				s += "\n"
			}
			s += b.Text
		case "image", "document":
			s += "[" + b.Type + "]"
		}
	}
	return s
}

type block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"` // tool_use
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	Call     string          `json:"tool_use_id"` // tool_result
	Content  content         `json:"content"`
	IsError  bool            `json:"is_error"`
}

// streamEvent is a piece of an answer that is being written.
type streamEvent struct {
	Type    string       `json:"type"`
	Index   int          `json:"index"`
	Message *message     `json:"message"`       // message_start
	Block   *block       `json:"content_block"` // content_block_start
	Delta   *streamDelta `json:"delta"`         // content_block_delta, message_delta
	Usage   *usage       `json:"usage"`         // message_delta
}

type streamDelta struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	Thinking   string          `json:"thinking"`
	Safeguards json.RawMessage `json:"safeguard_results"` // message_delta; see review.go
}

// initialized is the answer to initialize.
type initialized struct {
	Version      string       `json:"claude_code_version"`
	Mode         string       `json:"current_permission_mode"`
	HooksApplied *bool        `json:"hooks_applied"`
	OnFailure    bool         `json:"hook_on_failure_supported"`
	Models       []modelEntry `json:"models"`
	Account      struct {
		TokenSource string `json:"tokenSource"`
		KeySource   string `json:"apiKeySource"`
	} `json:"account"`
}

type modelEntry struct {
	Value    string   `json:"value"`
	Resolved string   `json:"resolvedModel"`
	Name     string   `json:"displayName"`
	Auto     bool     `json:"supportsAutoMode"`
	Effort   bool     `json:"supportsEffort"`
	Efforts  []string `json:"supportedEffortLevels"`
}

// hookCall is a hook_callback.
type hookCall struct {
	Callback string `json:"callback_id"`
	Tool     string `json:"tool_use_id"`
	Input    struct {
		Event string          `json:"hook_event_name"`
		Name  string          `json:"tool_name"`
		Input json.RawMessage `json:"tool_input"`
		Tool  string          `json:"tool_use_id"`
		Agent string          `json:"agent_id"`
		Cwd   string          `json:"cwd"`
	} `json:"input"`
}

// hookAnswer is ours. The zero value says nothing, which leaves the call to the program's own mode.
type hookAnswer struct {
	Output *hookOutput `json:"hookSpecificOutput,omitempty"`
}

type hookOutput struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision"`
	Reason   string `json:"permissionDecisionReason,omitempty"`
}

// permissionCall is a can_use_tool.
type permissionCall struct {
	Reason string          `json:"decision_reason_type"`
	Name   string          `json:"tool_name"`
	Input  json.RawMessage `json:"input"`
	Tool   string          `json:"tool_use_id"`
	Agent  string          `json:"agent_id"`
}

// permissionAnswer is ours. Rules and directories are never given back; a mode only by setMode, on leaving plan.
type permissionAnswer struct {
	Behavior  string            `json:"behavior"`
	Message   string            `json:"message,omitempty"`
	Input     json.RawMessage   `json:"updatedInput,omitempty"`
	Updates   []permissionEntry `json:"updatedPermissions,omitempty"`
	Interrupt bool              `json:"interrupt,omitempty"`
}

type permissionEntry struct {
	Type        string `json:"type"`
	Mode        string `json:"mode"`
	Destination string `json:"destination"`
}

// prompt is a user's message.
type prompt struct {
	Type    string  `json:"type"`
	UUID    string  `json:"uuid"`
	Session string  `json:"session_id"`
	Parent  *string `json:"parent_tool_use_id"`
	// Composed has the text delivered as it is: otherwise a leading / or an @ means something.
	Composed bool          `json:"client_composed"`
	Message  promptMessage `json:"message"`
}

type promptMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}
