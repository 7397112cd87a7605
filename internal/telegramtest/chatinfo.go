package telegramtest

import "slices"

// MemberView is a ChatMember object of the Bot API.
type MemberView struct {
	User                *User  `json:"user"`
	Status              string `json:"status"`
	IsAnonymous         *bool  `json:"is_anonymous,omitempty"`
	CanManageChat       bool   `json:"can_manage_chat,omitempty"`
	CanDeleteMessages   bool   `json:"can_delete_messages,omitempty"`
	CanManageTopics     bool   `json:"can_manage_topics,omitempty"`
	CanPinMessages      bool   `json:"can_pin_messages,omitempty"`
	CanRestrictMembers  bool   `json:"can_restrict_members,omitempty"`
	CanPromoteMembers   bool   `json:"can_promote_members,omitempty"`
	CanChangeInfo       bool   `json:"can_change_info,omitempty"`
	CanInviteUsers      bool   `json:"can_invite_users,omitempty"`
	CanBeEdited         bool   `json:"can_be_edited,omitempty"`
	CanManageVideoChats bool   `json:"can_manage_video_chats,omitempty"`
	UntilDate           *int64 `json:"until_date,omitempty"`
}

// memberView is the standing of somebody with the fields that Telegram always gives with it.
func memberView(u *User, status string, topics bool) MemberView {
	v := MemberView{User: u, Status: status}
	switch status {
	case Administrator:
		v.CanManageChat, v.CanDeleteMessages, v.CanPinMessages, v.CanManageTopics = true, true, true, topics
		v.CanInviteUsers = true
		v.IsAnonymous = new(bool)
	case Creator:
		v.IsAnonymous = new(bool)
	case Kicked:
		v.UntilDate = new(int64)
	}
	return v
}

// standing is a person's or the bot's membership of a chat.
func (s *Server) standing(c *chat, id int64) MemberView {
	if id == s.bot.ID {
		return memberView(s.me(), c.bot, c.forum)
	}
	return memberView(s.user(id), c.status(id), c.forum)
}

// visible resolves chat_id to a chat of which the bot may know something.
func (c *call) visible() (*chat, error) {
	to, err := c.chat()
	if err != nil {
		return nil, err
	}
	if to.kind == Private {
		if to.bot != Member && !c.s.meets(to.id) {
			return nil, badRequest("chat not found")
		}
		return to, nil
	}
	return to, c.s.mayWrite(to)
}

func (c *call) getChat() (any, error) {
	to, err := c.visible()
	if err != nil {
		return nil, err
	}
	info := struct {
		ChatView
		AccentColorID    int             `json:"accent_color_id"`
		MaxReactionCount int             `json:"max_reaction_count"`
		PinnedMessage    *MessageView    `json:"pinned_message,omitempty"`
		AcceptedGifts    map[string]bool `json:"accepted_gift_types"`
	}{*to.view(), 0, 11, nil, map[string]bool{}}
	if n := len(to.pinned); n > 0 {
		if m := to.message(to.pinned[n-1]); m != nil {
			info.PinnedMessage = m.bare()
		}
	}
	return info, nil
}

func (c *call) getChatMember() (any, error) {
	to, err := c.visible()
	if err != nil {
		return nil, err
	}
	id := c.params.int("user_id")
	if id == 0 {
		return nil, badRequest("invalid user_id specified")
	}
	if id != c.s.bot.ID && c.s.person(id) == nil {
		return nil, badRequest("PARTICIPANT_ID_INVALID")
	}
	return c.s.standing(to, id), nil
}

func (c *call) getChatAdministrators() (any, error) {
	to, err := c.visible()
	if err != nil {
		return nil, err
	}
	if to.kind == Private {
		return nil, badRequest("there are no administrators in the private chat")
	}
	out := []MemberView{}
	if len(to.members) > 0 {
		out = append(out, c.s.standing(to, to.members[0]))
	}
	if to.bot == Administrator {
		out = append(out, c.s.standing(to, c.s.bot.ID))
	}
	return out, nil
}

func (c *call) leaveChat() (any, error) {
	to, err := c.writable()
	if err != nil {
		return nil, err
	}
	if to.kind == Private {
		return nil, badRequest("chat member status can't be changed in private chats")
	}
	c.s.setBot(to, c.s.me(), Left)
	return true, nil
}

func (c *call) pinChatMessage() (any, error) {
	to, err := c.writable()
	if err != nil {
		return nil, err
	}
	if to.kind != Private && to.bot != Administrator {
		return nil, badRequest("not enough rights to manage pinned messages in the chat")
	}
	m := to.message(c.params.int("message_id"))
	if m == nil || m.service != nil {
		return nil, badRequest("message to pin not found")
	}
	to.pinned = append(slices.DeleteFunc(to.pinned, func(id int64) bool { return id == m.id }), m.id)
	c.s.add(&message{
		chat: to, topic: m.topic, sender: c.s.me(), silent: c.params.bool("disable_notification"),
		service: &service{text: "message pinned", pinned: m},
	})
	return true, nil
}

func (c *call) unpinChatMessage() (any, error) {
	to, err := c.writable()
	if err != nil {
		return nil, err
	}
	if to.kind != Private && to.bot != Administrator {
		return nil, badRequest("not enough rights to manage pinned messages in the chat")
	}
	id := c.params.int("message_id")
	if id == 0 && len(to.pinned) > 0 {
		id = to.pinned[len(to.pinned)-1]
	}
	if !slices.Contains(to.pinned, id) {
		return nil, badRequest("message to unpin not found")
	}
	to.pinned = slices.DeleteFunc(to.pinned, func(one int64) bool { return one == id })
	return true, nil
}
