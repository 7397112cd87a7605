package telegramtest

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// maxAnswer is the longest answer to a callback query, in code points.
const maxAnswer = 200

// query is a tap on a button until the bot has answered it.
type query struct {
	id       string
	message  *message
	at       time.Time
	answered bool
	text     string
	alert    bool
	url      string
}

// CallbackQuery is a CallbackQuery object of the Bot API.
type CallbackQuery struct {
	ID           string       `json:"id"`
	From         *User        `json:"from"`
	Message      *MessageView `json:"message"`
	ChatInstance string       `json:"chat_instance"`
	Data         string       `json:"data"`
}

// tap makes a callback query of a person's tap and sends it to the bot.
func (s *Server) tap(p *person, m *message, b button) *query {
	for id, q := range s.queries {
		if s.clock().Sub(q.at) > 2*s.queryTimeout+time.Hour {
			delete(s.queries, id)
		}
	}
	q := &query{id: strconv.FormatInt(randomID(), 10), message: m, at: s.clock()}
	s.queries[q.id] = q
	s.push("callback_query", &CallbackQuery{
		ID: q.id, From: p.user(), Message: m.view(), Data: b.CallbackData,
		ChatInstance: strconv.FormatInt(m.chat.id*7919, 10),
	})
	return q
}

func (c *call) answerCallbackQuery() (any, error) {
	text, err := c.params.text("text")
	if err != nil {
		return nil, err
	}
	q := c.s.queries[c.params.values["callback_query_id"]]
	if q == nil || q.answered || c.now.Sub(q.at) >= c.s.queryTimeout {
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	}
	if utf8.RuneCountInString(text) > maxAnswer {
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	q.answered, q.text, q.alert, q.url = true, text, c.params.bool("show_alert"), c.params.values["url"]
	c.s.note(event{Type: "answer", Chat: q.message.chat.id, Topic: q.message.topic, MessageID: q.message.id, Text: text})
	return true, nil
}
