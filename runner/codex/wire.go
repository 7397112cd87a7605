package codex

import "encoding/json"

// The parts of the app-server protocol that are used, in the protocol's own spelling. Whatever else a frame holds is
// left alone: the protocol grows with each version.

// route tells whose a notification or a request is.
type route struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
	ItemID   string `json:"itemId"`
}

type initialized struct {
	UserAgent string `json:"userAgent"`
}

// threadOpened answers thread/start and thread/resume. Its settings are an echo of what the thread is held to.
type threadOpened struct {
	Thread struct {
		ID string `json:"id"`
	} `json:"thread"`
	Model                   string           `json:"model"`
	Cwd                     string           `json:"cwd"`
	ApprovalPolicy          json.RawMessage  `json:"approvalPolicy"`
	ApprovalsReviewer       string           `json:"approvalsReviewer"`
	Sandbox                 sandboxPolicy    `json:"sandbox"`
	ActivePermissionProfile *profileID       `json:"activePermissionProfile"`
	Collaboration           *collaborationIn `json:"collaborationMode"`
	Tier                    *string          `json:"serviceTier"`
}

type settingsUpdated struct {
	ThreadSettings struct {
		Model                   string           `json:"model"`
		Cwd                     string           `json:"cwd"`
		ApprovalPolicy          json.RawMessage  `json:"approvalPolicy"`
		ApprovalsReviewer       string           `json:"approvalsReviewer"`
		SandboxPolicy           sandboxPolicy    `json:"sandboxPolicy"`
		ActivePermissionProfile *profileID       `json:"activePermissionProfile"`
		Collaboration           *collaborationIn `json:"collaborationMode"`
		Tier                    *string          `json:"serviceTier"`
	} `json:"threadSettings"`
}

type sandboxPolicy struct {
	Type          string   `json:"type"`
	NetworkAccess bool     `json:"networkAccess,omitempty"`
	WritableRoots []string `json:"writableRoots,omitempty"`
}

type profileID struct {
	ID string `json:"id"`
}

type collaborationIn struct {
	Mode string `json:"mode"`
}

type turnFrame struct {
	ThreadID string `json:"threadId"`
	Turn     struct {
		ID         string     `json:"id"`
		RootTurnID string     `json:"rootTurnId"`
		Status     string     `json:"status"`
		Error      *turnError `json:"error"`
	} `json:"turn"`
}

type turnError struct {
	Message        string          `json:"message"`
	CodexErrorInfo json.RawMessage `json:"codexErrorInfo"`
	Details        string          `json:"additionalDetails"` // what went wrong, where Message says that it is tried again
}

type errorFrame struct {
	Error     turnError `json:"error"`
	WillRetry bool      `json:"willRetry"`
}

type itemFrame struct {
	route
	Item wireItem `json:"item"`
}

// wireItem is an item of any type; each type uses some of the fields.
type wireItem struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Status string `json:"status"`
	Text   string `json:"text"` // agentMessage, plan

	Summary []string `json:"summary"` // reasoning

	Command          string  `json:"command"` // commandExecution
	Cwd              string  `json:"cwd"`
	AggregatedOutput *string `json:"aggregatedOutput"`
	ExitCode         *int    `json:"exitCode"`

	Changes []wireChange `json:"changes"` // fileChange

	Server    string          `json:"server"` // mcpToolCall
	Tool      string          `json:"tool"`
	Namespace string          `json:"namespace"` // dynamicToolCall
	Name      string          `json:"name"`      // functionCallOutput
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Error     json.RawMessage `json:"error"`
	Output    json.RawMessage `json:"output"`

	Query string `json:"query"` // webSearch
	Path  string `json:"path"`  // imageView

	AgentThreadID string `json:"agentThreadId"` // subAgentActivity
	AgentPath     string `json:"agentPath"`
	Kind          string `json:"kind"`
}

type wireChange struct {
	Path string `json:"path"`
	Kind struct {
		Type     string `json:"type"`
		MovePath string `json:"move_path"`
	} `json:"kind"`
	Diff string `json:"diff"`
}

type deltaFrame struct {
	route
	Delta        string `json:"delta"`
	SummaryIndex int    `json:"summaryIndex"`
}

type tokenUsage struct {
	route
	TokenUsage struct {
		Last struct {
			Total  int64 `json:"totalTokens"`
			Input  int64 `json:"inputTokens"`
			Cached int64 `json:"cachedInputTokens"`
			Output int64 `json:"outputTokens"`
		} `json:"last"`
		Window int64 `json:"modelContextWindow"`
	} `json:"tokenUsage"`
}

type planUpdated struct {
	route
	Plan []struct {
		Step   string `json:"step"`
		Status string `json:"status"`
	} `json:"plan"`
}

type reviewFrame struct {
	route
	TargetItemID string `json:"targetItemId"`
	Review       struct {
		Status    string  `json:"status"`
		RiskLevel *string `json:"riskLevel"`
		Rationale string  `json:"rationale"`
	} `json:"review"`
	Action reviewAction `json:"action"`
}

// reviewAction is what codex's own reviewer looks at.
type reviewAction struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Files   []string `json:"files"`
	Server  string   `json:"server"`
	Tool    string   `json:"toolName"`
	Target  string   `json:"target"`
}

// reviewerParams changes who a running turn's questions go to.
type reviewerParams struct {
	ThreadID          string `json:"threadId"`
	TurnID            string `json:"turnId"`
	ApprovalsReviewer string `json:"approvalsReviewer"`
}

// modelList is the answer to model/list.
type modelList struct {
	Data []struct {
		ID      string `json:"id"`
		Model   string `json:"model"`
		Name    string `json:"displayName"`
		Hidden  bool   `json:"hidden"`
		Default bool   `json:"isDefault"`
		Effort  string `json:"defaultReasoningEffort"`
		Efforts []struct {
			Effort string `json:"reasoningEffort"`
		} `json:"supportedReasoningEfforts"`
	} `json:"data"`
	Next *string `json:"nextCursor"`
}

type resolved struct {
	ThreadID  string          `json:"threadId"`
	RequestID json.RawMessage `json:"requestId"`
}

// approvalRequest is item/commandExecution/requestApproval and item/fileChange/requestApproval.
type approvalRequest struct {
	route
	Kind                  string          `json:"kind"`
	Reason                string          `json:"reason"`
	Command               string          `json:"command"`
	Cwd                   string          `json:"cwd"`
	GrantRoot             *string         `json:"grantRoot"`
	NetworkContext        json.RawMessage `json:"networkApprovalContext"`
	AdditionalPermissions json.RawMessage `json:"additionalPermissions"`
}

type userInputRequest struct {
	route
	Questions []struct {
		ID       string `json:"id"`
		Header   string `json:"header"`
		Question string `json:"question"`
		IsOther  bool   `json:"isOther"`
		IsSecret bool   `json:"isSecret"`
		Options  []struct {
			Label       string `json:"label"`
			Description string `json:"description"`
		} `json:"options"`
	} `json:"questions"`
}

type userInputAnswer struct {
	Answers map[string]givenAnswers `json:"answers"`
}

type givenAnswers struct {
	Answers []string `json:"answers"`
}

type permissionsRequest struct {
	route
	Reason      string          `json:"reason"`
	Cwd         string          `json:"cwd"`
	Permissions json.RawMessage `json:"permissions"`
}

// askedPermissions is what of a permissions request is understood; a request that holds anything else is refused.
type askedPermissions struct {
	Network *struct {
		Enabled *bool `json:"enabled,omitempty"`
	} `json:"network,omitempty"`
	FileSystem *struct {
		Read    []string `json:"read,omitempty"`
		Write   []string `json:"write,omitempty"`
		Entries []struct {
			Path struct {
				Type string `json:"type"`
				Path string `json:"path"`
			} `json:"path"`
			Access string `json:"access"`
		} `json:"entries,omitempty"`
	} `json:"fileSystem,omitempty"`
}

type permissionsAnswer struct {
	Permissions any    `json:"permissions"`
	Scope       string `json:"scope"`
}

type elicitationRequest struct {
	route
	ServerName      string          `json:"serverName"`
	Mode            string          `json:"mode"`
	Message         string          `json:"message"`
	URL             string          `json:"url"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
	Meta            *struct {
		ApprovalKind string          `json:"codex_approval_kind"`
		ToolName     string          `json:"tool_name"`
		ToolParams   json.RawMessage `json:"tool_params"`
		Annotations  *struct {
			ReadOnly    *bool `json:"readOnlyHint"`
			Destructive *bool `json:"destructiveHint"`
			OpenWorld   *bool `json:"openWorldHint"`
		} `json:"tool_annotations"`
	} `json:"_meta"`
}

type elicitationAnswer struct {
	Action  string `json:"action"`
	Content any    `json:"content,omitempty"`
	Meta    any    `json:"_meta"`
}

type decision struct {
	Decision string `json:"decision"`
}

// input is one piece of what a person says.
type input struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	Path string `json:"path,omitempty"`
}

// policyParams is the policy in full, as it goes with every turn. Either Permissions or SandboxPolicy is set.
type policyParams struct {
	ApprovalPolicy    string            `json:"approvalPolicy"`
	ApprovalsReviewer string            `json:"approvalsReviewer"`
	Permissions       string            `json:"permissions,omitempty"`
	SandboxPolicy     *sandboxPolicy    `json:"sandboxPolicy,omitempty"`
	Collaboration     *collaborationOut `json:"collaborationMode,omitempty"`
}

type collaborationOut struct {
	Mode     string                `json:"mode"`
	Settings collaborationSettings `json:"settings"`
}

// collaborationSettings wants all three keys.
type collaborationSettings struct {
	Model        string  `json:"model"`
	Effort       *string `json:"reasoning_effort"`
	Instructions *string `json:"developer_instructions"`
}

// openParams begins or resumes a thread. Threads always begin read-only: any other start marks the folder as trusted,
// which loads the project's own configuration and rules.
type openParams struct {
	ThreadID          string `json:"threadId,omitempty"`
	ExcludeTurns      bool   `json:"excludeTurns,omitempty"`
	Cwd               string `json:"cwd"`
	ApprovalPolicy    string `json:"approvalPolicy"`
	ApprovalsReviewer string `json:"approvalsReviewer"`
	Sandbox           string `json:"sandbox"`
	Model             string `json:"model,omitempty"`
	ModelProvider     string `json:"modelProvider,omitempty"`
	// Config holds the editing profile, which is made for the workspace as it is.
	Config map[string]access `json:"config"`
	// Tools are ours. A thread keeps those that it was started with.
	Tools []ownTool `json:"dynamicTools,omitempty"`
}

type settingsParams struct {
	ThreadID string `json:"threadId"`
	policyParams
}

type turnParams struct {
	ThreadID string `json:"threadId"`
	policyParams
	Input           []input `json:"input"`
	ClientMessageID string  `json:"clientUserMessageId,omitempty"`
	Model           string  `json:"model,omitempty"`
	Effort          string  `json:"effort,omitempty"`
	Tier            string  `json:"serviceTier,omitempty"` // none leaves the thread's
}

type steerParams struct {
	ThreadID        string  `json:"threadId"`
	ExpectedTurnID  string  `json:"expectedTurnId"`
	Input           []input `json:"input"`
	ClientMessageID string  `json:"clientUserMessageId,omitempty"`
}

type threadTurn struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
}

type threadOnly struct {
	ThreadID string `json:"threadId"`
}

type injectParams struct {
	ThreadID string         `json:"threadId"`
	Items    []injectedItem `json:"items"`
}

type injectedItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content []injectedInput `json:"content"`
}

type injectedInput struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type accountRead struct {
	Account *struct {
		Type string `json:"type"`
	} `json:"account"`
	RequiresOpenaiAuth bool `json:"requiresOpenaiAuth"`
}
