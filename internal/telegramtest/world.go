package telegramtest

import (
	"cmp"
	"fmt"
	"slices"
)

// Types of chats, as the Bot API names them.
const (
	Private    = "private"
	Group      = "group"
	Supergroup = "supergroup"
)

// Statuses of a member, as the Bot API names them.
const (
	Member        = "member"
	Administrator = "administrator"
	Creator       = "creator"
	Left          = "left"
	Kicked        = "kicked"
)

// Ids of the demo's world.
const (
	AdaID      int64 = 1001 // the owner
	GraceID    int64 = 1002 // an operator
	LinusID    int64 = 1003 // a viewer
	MalloryID  int64 = 1004 // a stranger
	GroupID    int64 = -4001
	ForumID    int64 = -1002000000001
	defaultBot int64 = 123456789
)

// Bot is the account of the bot.
type Bot struct {
	ID       int64
	Name     string
	Username string
	// Privacy hides messages in groups that are neither commands, nor replies to the bot, nor name it, unless the bot
	// is an administrator there.
	Privacy bool
	// Topics lets private chats have topics.
	Topics bool
}

func (b Bot) orDefault() Bot {
	b.ID = cmp.Or(b.ID, defaultBot)
	b.Name = cmp.Or(b.Name, "Drawbridge")
	b.Username = cmp.Or(b.Username, "drawbridge_demo_bot")
	return b
}

// Person is the account of a human being. The id is also that of the private chat with the bot.
type Person struct {
	ID       int64
	Name     string
	Username string
	// Role is a remark for whoever uses /sim; Telegram knows nothing of it.
	Role         string
	LanguageCode string
	// Started says that the person has already written to the bot, so that it may write first.
	Started bool
}

// Chat is a group or supergroup.
type Chat struct {
	ID       int64
	Type     string // Group or Supergroup
	Title    string
	Username string
	// Forum gives a supergroup topics.
	Forum bool
	// Members are ids of people. The first is the chat's creator.
	Members []int64
	// BotStatus is Member, Administrator, Left or Kicked; Member if empty.
	BotStatus string
}

// DefaultPeople are the people of the demo: an owner, an operator, a viewer and a stranger.
func DefaultPeople() []Person {
	return []Person{
		{ID: AdaID, Name: "Ada", Username: "ada", Role: "owner", LanguageCode: "en"},
		{ID: GraceID, Name: "Grace", Username: "grace", Role: "operator", LanguageCode: "en"},
		{ID: LinusID, Name: "Linus", Username: "linus", Role: "viewer", LanguageCode: "en"},
		{ID: MalloryID, Name: "Mallory", Username: "mallory", Role: "stranger", LanguageCode: "en"},
	}
}

// DefaultChats are a group and a forum in which all of DefaultPeople are.
func DefaultChats() []Chat {
	members := []int64{AdaID, GraceID, LinusID, MalloryID}
	return []Chat{
		{ID: GroupID, Type: Group, Title: "Workshop", Members: members},
		{ID: ForumID, Type: Supergroup, Title: "Projects", Forum: true, Members: members, BotStatus: Administrator},
	}
}

type person struct {
	Person
	blocked bool
}

func (p *person) user() *User {
	return &User{ID: p.ID, FirstName: p.Name, Username: p.Username, LanguageCode: p.LanguageCode}
}

type chat struct {
	id         int64
	kind       string
	title      string
	username   string
	forum      bool
	members    []int64
	bot        string // the bot's status
	owner      *person
	migratedTo int64
	lastID     int64 // of a supergroup, which has a sequence of its own
	messages   []*message
	topics     []*topic
	drafts     []*draft
	pinned     []int64
	albums     map[string]string
}

type topic struct {
	id     int64
	name   string
	color  int
	icon   string
	closed bool
}

func (s *Server) populate(people []Person, chats []Chat) {
	for _, p := range people {
		if s.person(p.ID) != nil || p.ID <= 0 || p.ID == s.bot.ID {
			panic(fmt.Sprintf("telegramtest: id %d of a person is taken or not positive", p.ID))
		}
		one := &person{Person: p}
		s.people = append(s.people, one)
		c := &chat{id: p.ID, kind: Private, title: p.Name, username: p.Username, owner: one, members: []int64{p.ID}, bot: Left}
		if p.Started {
			c.bot = Member
		}
		s.chats = append(s.chats, c)
	}
	for _, c := range chats {
		if s.chat(c.ID) != nil || c.ID >= 0 || (c.Type != Group && c.Type != Supergroup) {
			panic(fmt.Sprintf("telegramtest: id %d or type %q of a chat is not possible", c.ID, c.Type))
		}
		for _, m := range c.Members {
			if s.person(m) == nil {
				panic(fmt.Sprintf("telegramtest: chat %d has a member %d who does not exist", c.ID, m))
			}
		}
		s.chats = append(s.chats, &chat{
			id: c.ID, kind: c.Type, title: c.Title, username: c.Username, forum: c.Forum && c.Type == Supergroup,
			members: slices.Clone(c.Members), bot: cmp.Or(c.BotStatus, Member),
			lastID: 1, // message 1 of a forum is the General topic
		})
	}
}

func (s *Server) person(id int64) *person {
	for _, p := range s.people {
		if p.ID == id {
			return p
		}
	}
	return nil
}

func (s *Server) chat(id int64) *chat {
	for _, c := range s.chats {
		if c.id == id {
			return c
		}
	}
	return nil
}

// user is the account behind an id: a person's or the bot's.
func (s *Server) user(id int64) *User {
	if p := s.person(id); p != nil {
		return p.user()
	}
	return s.me()
}

func (s *Server) me() *User {
	return &User{ID: s.bot.ID, IsBot: true, FirstName: s.bot.Name, Username: s.bot.Username}
}

func (c *chat) has(person int64) bool { return slices.Contains(c.members, person) }

// status is a person's standing in the chat.
func (c *chat) status(person int64) string {
	switch {
	case !c.has(person):
		return Left
	case c.kind != Private && c.members[0] == person:
		return Creator
	default:
		return Member
	}
}

func (c *chat) topic(id int64) *topic {
	for _, t := range c.topics {
		if t.id == id {
			return t
		}
	}
	return nil
}

func (c *chat) message(id int64) *message {
	i, found := slices.BinarySearchFunc(c.messages, id, func(m *message, id int64) int { return cmp.Compare(m.id, id) })
	if !found || c.messages[i].deleted {
		return nil
	}
	return c.messages[i]
}

func (c *chat) view() *ChatView {
	v := &ChatView{ID: c.id, Type: c.kind, Username: c.username, IsForum: c.forum}
	if c.kind == Private {
		v.FirstName = c.title
	} else {
		v.Title = c.title
	}
	return v
}

// nextMessageID takes the next id of the chat's sequence. Supergroups count for themselves, all other chats of a bot
// share one sequence, so that a message id alone identifies nothing.
func (s *Server) nextMessageID(c *chat) int64 {
	if c.kind == Supergroup {
		c.lastID++
		return c.lastID
	}
	s.lastID++
	return s.lastID
}
