package telegramtest

import "encoding/json"

// User is a User object of the Bot API.
type User struct {
	ID           int64  `json:"id"`
	IsBot        bool   `json:"is_bot"`
	FirstName    string `json:"first_name"`
	Username     string `json:"username,omitempty"`
	LanguageCode string `json:"language_code,omitempty"`
}

// ChatView is a Chat object of the Bot API.
type ChatView struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title,omitempty"`
	Username  string `json:"username,omitempty"`
	FirstName string `json:"first_name,omitempty"`
	IsForum   bool   `json:"is_forum,omitempty"`
}

// MessageView is a Message object of the Bot API, with the fields that are simulated.
type MessageView struct {
	MessageID       int64           `json:"message_id"`
	MessageThreadID int64           `json:"message_thread_id,omitempty"`
	From            *User           `json:"from,omitempty"`
	SenderChat      *ChatView       `json:"sender_chat,omitempty"`
	ViaBot          *User           `json:"via_bot,omitempty"`
	Date            int64           `json:"date"`
	Chat            *ChatView       `json:"chat"`
	ForwardOrigin   *Origin         `json:"forward_origin,omitempty"`
	IsTopicMessage  bool            `json:"is_topic_message,omitempty"`
	ReplyToMessage  *MessageView    `json:"reply_to_message,omitempty"`
	EditDate        int64           `json:"edit_date,omitempty"`
	MediaGroupID    string          `json:"media_group_id,omitempty"`
	Text            string          `json:"text,omitempty"`
	Entities        []Entity        `json:"entities,omitempty"`
	Document        *FileView       `json:"document,omitempty"`
	Photo           []FileView      `json:"photo,omitempty"`
	Voice           *FileView       `json:"voice,omitempty"`
	Caption         string          `json:"caption,omitempty"`
	CaptionEntities []Entity        `json:"caption_entities,omitempty"`
	ReplyMarkup     *inlineKeyboard `json:"reply_markup,omitempty"`

	ForumTopicCreated *TopicCreated `json:"forum_topic_created,omitempty"`
	ForumTopicEdited  *TopicEdited  `json:"forum_topic_edited,omitempty"`
	ForumTopicClosed  *struct{}     `json:"forum_topic_closed,omitempty"`
	NewChatMembers    []*User       `json:"new_chat_members,omitempty"`
	LeftChatMember    *User         `json:"left_chat_member,omitempty"`
	PinnedMessage     *MessageView  `json:"pinned_message,omitempty"`
	MigrateToChatID   int64         `json:"migrate_to_chat_id,omitempty"`
	MigrateFromChatID int64         `json:"migrate_from_chat_id,omitempty"`
}

// Origin is a MessageOrigin object: where a forwarded message was first written.
type Origin struct {
	Type           string `json:"type"` // user or hidden_user
	Date           int64  `json:"date"`
	SenderUser     *User  `json:"sender_user,omitempty"`
	SenderUserName string `json:"sender_user_name,omitempty"`
}

// FileView is a Document, PhotoSize or Voice object, according to where it stands.
type FileView struct {
	FileID       string `json:"file_id"`
	FileUniqueID string `json:"file_unique_id"`
	FileName     string `json:"file_name,omitempty"`
	MimeType     string `json:"mime_type,omitempty"`
	FileSize     int    `json:"file_size"`
	Width        int    `json:"width,omitempty"`
	Height       int    `json:"height,omitempty"`
	Duration     int    `json:"duration,omitempty"`
	FilePath     string `json:"file_path,omitempty"`
}

// TopicCreated is the service message of a topic that was made, and with an id the answer of createForumTopic.
type TopicCreated struct {
	MessageThreadID   int64  `json:"message_thread_id,omitempty"`
	Name              string `json:"name"`
	IconColor         int    `json:"icon_color"`
	IconCustomEmojiID string `json:"icon_custom_emoji_id,omitempty"`
}

// TopicEdited is the service message of a topic that was renamed.
type TopicEdited struct {
	Name string `json:"name,omitempty"`
}

// Command is a BotCommand object.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// answer is the envelope of every answer of the Bot API.
type answer struct {
	OK          bool              `json:"ok"`
	Result      json.RawMessage   `json:"result,omitempty"`
	ErrorCode   int               `json:"error_code,omitempty"`
	Description string            `json:"description,omitempty"`
	Parameters  *answerParameters `json:"parameters,omitempty"`
}

type answerParameters struct {
	RetryAfter      int   `json:"retry_after,omitempty"`
	MigrateToChatID int64 `json:"migrate_to_chat_id,omitempty"`
}
