package telegramtest

import (
	"net/http"
	"slices"
	"unicode/utf8"
)

// simEdit lets a person edit a message of their own.
func (s *Server) simEdit(r *http.Request) (any, error) {
	var in struct {
		Chat      int64    `json:"chat"`
		From      int64    `json:"from"`
		MessageID int64    `json:"message_id"`
		Text      string   `json:"text"`
		Entities  []Entity `json:"entities"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, p, err := s.here(in.Chat, in.From)
	if err != nil {
		return nil, err
	}
	m := c.message(in.MessageID)
	switch {
	case m == nil:
		return nil, refuse(http.StatusNotFound, "there is no message %d in chat %d", in.MessageID, in.Chat)
	case m.sender.ID != p.ID || m.service != nil || m.forward != nil:
		return nil, refuse(http.StatusForbidden, "message %d was not written by %s", m.id, p.Name)
	}
	next := &message{text: in.Text}
	if err := s.personText(next, in.Entities); err != nil {
		return nil, err
	}
	if n := utf8.RuneCountInString(next.text); (n == 0 && m.media == nil) || n > MaxText || (n > MaxCaption && m.media != nil) {
		return nil, refuse(http.StatusBadRequest, "the text is empty or too long")
	}
	m.text, m.entities = next.text, next.entities
	s.edit(m)
	s.tell("edited_message", m)
	return map[string]int64{"message_id": m.id}, nil
}

// simTopic lets a person open a topic.
func (s *Server) simTopic(r *http.Request) (any, error) {
	var in struct {
		Chat int64  `json:"chat"`
		Name string `json:"name"`
		From int64  `json:"from"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chat(in.Chat); in.From == 0 && c != nil && len(c.members) > 0 {
		in.From = c.members[0]
	}
	c, p, err := s.here(in.Chat, in.From)
	if err != nil {
		return nil, err
	}
	if !s.hasTopics(c) {
		return nil, refuse(http.StatusConflict, "chat %d is not a forum", c.id)
	}
	if n := utf8.RuneCountInString(in.Name); n < 1 || n > maxTopicName {
		return nil, refuse(http.StatusBadRequest, "the name of a topic has between 1 and %d characters", maxTopicName)
	}
	t, m := s.openTopic(c, p.user(), in.Name, int(topicColors()[0]), "")
	s.tell("message", m)
	return map[string]int64{"topic": t.id}, nil
}

// simMember lets somebody join or leave a group.
func (s *Server) simMember(r *http.Request) (any, error) {
	var in struct {
		Chat   int64  `json:"chat"`
		Member int64  `json:"member"`
		Action string `json:"action"`
		From   int64  `json:"from"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(in.Chat)
	if c == nil || c.kind == Private || c.migratedTo != 0 {
		return nil, refuse(http.StatusNotFound, "there is no group %d", in.Chat)
	}
	by := in.From
	if by == 0 && len(c.members) > 0 {
		by = c.members[0]
	}
	if s.person(by) == nil {
		return nil, refuse(http.StatusNotFound, "there is no person %d", by)
	}
	if in.Member == s.bot.ID {
		status, known := map[string]string{"add": Member, "remove": Kicked, "promote": Administrator, "demote": Member}[in.Action]
		if !known {
			return nil, refuse(http.StatusBadRequest, "action is add, remove, promote or demote for the bot")
		}
		s.setBot(c, s.user(by), status)
		return map[string]string{"status": c.bot}, nil
	}
	p := s.person(in.Member)
	switch {
	case p == nil:
		return nil, refuse(http.StatusNotFound, "there is no person %d", in.Member)
	case in.Action == "add" && !c.has(p.ID):
		s.join(c, p, by)
	case in.Action == "remove" && c.has(p.ID):
		s.leave(c, p, by)
	case in.Action != "add" && in.Action != "remove":
		return nil, refuse(http.StatusBadRequest, "action is add or remove")
	}
	return map[string]string{"status": c.status(p.ID)}, nil
}

func (s *Server) join(c *chat, p *person, by int64) {
	old := s.standing(c, p.ID)
	c.members = append(c.members, p.ID)
	m := s.add(&message{chat: c, sender: s.user(by), service: &service{text: p.Name + " joined", joined: []*User{p.user()}}})
	s.tell("message", m)
	s.tellMember("chat_member", c, s.user(by), old, s.standing(c, p.ID))
}

func (s *Server) leave(c *chat, p *person, by int64) {
	old := s.standing(c, p.ID)
	c.members = slices.DeleteFunc(c.members, func(id int64) bool { return id == p.ID })
	m := s.add(&message{chat: c, sender: s.user(by), service: &service{text: p.Name + " left", left: p.user()}})
	s.tell("message", m)
	s.tellMember("chat_member", c, s.user(by), old, s.standing(c, p.ID))
}

// setBot changes the bot's standing in a group and tells it.
func (s *Server) setBot(c *chat, by *User, status string) {
	old := s.standing(c, s.bot.ID)
	if old.Status == status {
		return
	}
	c.bot = status
	s.note(event{Type: "member", Chat: c.id})
	s.tellMember("my_chat_member", c, by, old, s.standing(c, s.bot.ID))
}

// tellMember pushes a ChatMemberUpdated. Changes of others come to administrators only.
func (s *Server) tellMember(kind string, c *chat, by *User, old, next MemberView) {
	if kind == "chat_member" && c.bot != Administrator {
		return
	}
	s.push(kind, map[string]any{
		"chat": c.view(), "from": by, "date": s.clock().Unix(), "old_chat_member": old, "new_chat_member": next,
	})
}

// simBlock lets a person block the bot, or unblock it.
func (s *Server) simBlock(r *http.Request) (any, error) {
	var in struct {
		From    int64 `json:"from"`
		Blocked bool  `json:"blocked"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.person(in.From)
	if p == nil {
		return nil, refuse(http.StatusNotFound, "there is no person %d", in.From)
	}
	if p.blocked != in.Blocked {
		p.blocked = in.Blocked
		status := map[bool]string{false: Member, true: Kicked}
		s.note(event{Type: "member", Chat: p.ID})
		s.tellMember("my_chat_member", s.chat(p.ID), p.user(),
			memberView(s.me(), status[!in.Blocked], false), memberView(s.me(), status[in.Blocked], false))
	}
	return map[string]bool{"blocked": p.blocked}, nil
}

// simReact lets a person react to a message. The bot hears of it where it is an administrator, and in private chats.
func (s *Server) simReact(r *http.Request) (any, error) {
	var in struct {
		Chat      int64  `json:"chat"`
		From      int64  `json:"from"`
		MessageID int64  `json:"message_id"`
		Emoji     string `json:"emoji"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, p, err := s.here(in.Chat, in.From)
	if err != nil {
		return nil, err
	}
	m := c.message(in.MessageID)
	if m == nil {
		return nil, refuse(http.StatusNotFound, "there is no message %d in chat %d", in.MessageID, in.Chat)
	}
	list := []reaction{}
	if in.Emoji != "" {
		if !slices.Contains(reactionEmoji(), in.Emoji) {
			return nil, refuse(http.StatusBadRequest, "%q can't be a reaction", in.Emoji)
		}
		list = append(list, reaction{"emoji", in.Emoji})
	}
	old := m.react(p.ID, list)
	s.note(event{Type: "reaction", Chat: c.id, Topic: m.topic, MessageID: m.id})
	if c.kind == Private || c.bot == Administrator {
		s.push("message_reaction", map[string]any{
			"chat": c.view(), "message_id": m.id, "user": p.user(), "date": s.clock().Unix(),
			"old_reaction": old, "new_reaction": list,
		})
	}
	return map[string]int64{"message_id": m.id}, nil
}

// simStopDraft is a person's tap on the Stop button of a draft.
func (s *Server) simStopDraft(r *http.Request) (any, error) {
	var in struct {
		Chat    int64 `json:"chat"`
		DraftID int64 `json:"draft_id"`
		From    int64 `json:"from"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.From == 0 {
		in.From = in.Chat
	}
	c, _, err := s.here(in.Chat, in.From)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.liveDrafts(c), func(d *draft) bool { return d.id == in.DraftID || in.DraftID == 0 })
	if i < 0 {
		return nil, refuse(http.StatusNotFound, "there is no draft %d in chat %d", in.DraftID, c.id)
	}
	d := c.drafts[i]
	if !d.canStop {
		return nil, refuse(http.StatusConflict, "draft %d has no Stop button", d.id)
	}
	stopped := map[string]any{"chat": c.view(), "draft_id": d.id}
	if d.topic != 0 {
		stopped["message_thread_id"] = d.topic
	}
	s.push("stopped_message_generation", stopped)
	d.canStop = false
	if !d.keep {
		s.endDrafts(c, d.topic)
	}
	return map[string]bool{"stopped": true}, nil
}

// simMigrate turns a group into a supergroup with another id, as its owner does by opening it or giving it a name.
func (s *Server) simMigrate(r *http.Request) (any, error) {
	var in struct {
		Chat int64 `json:"chat"`
	}
	if err := body(r, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(in.Chat)
	if c == nil || c.kind != Group || c.migratedTo != 0 {
		return nil, refuse(http.StatusNotFound, "there is no group %d", in.Chat)
	}
	next := &chat{
		id: c.id - 1_000_000_000_000, kind: Supergroup, title: c.title, members: slices.Clone(c.members), bot: c.bot, lastID: 1,
	}
	if s.chat(next.id) != nil {
		return nil, refuse(http.StatusConflict, "chat %d exists already", next.id)
	}
	s.chats = append(s.chats, next)
	by := s.me()
	if len(c.members) > 0 {
		by = s.user(c.members[0])
	}
	was := s.add(&message{chat: c, sender: by, service: &service{text: "became a supergroup", migrated: next.id}})
	is := s.add(&message{chat: next, sender: by, service: &service{text: "was a group", from: c.id}})
	s.tell("message", was)
	s.tell("message", is)
	c.migratedTo = next.id
	return map[string]int64{"chat": next.id}, nil
}
