package bot

import (
	"errors"
	"fmt"

	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"
)

const (
	maxOffers = 40   // how many buttons a menu has; what is beyond can be written
	maxRows   = 20   // how many lines of a list, each with its button, one message has
	maxList   = 3500 // UTF-16 units of such a message
)

// lists collects lines with a button each into messages that Telegram takes.
type lists struct {
	pages []page
}

type page struct {
	text formatting.Builder
	rows [][]option
}

// add puts a line at the end of the last page, or of a new one if that is full.
func (l *lists) add(line formatting.Message, row ...option) {
	n := len(l.pages)
	if n == 0 || len(l.pages[n-1].rows) == maxRows || l.pages[n-1].text.Len()+formatting.Len(line.Text) > maxList {
		l.pages = append(l.pages, page{})
		n++
	}
	p := &l.pages[n-1]
	if p.text.Len() > 0 {
		p.text.Text("\n")
	}
	p.text.Append(line)
	if len(row) > 0 {
		p.rows = append(p.rows, row)
	}
}

// send sends the pages; the first one answers.
func (b *Bot) sendLists(t *store.Txn, s author, l *lists) error {
	for i := range l.pages {
		p := &l.pages[i]
		if i > 0 {
			s.message, s.tapped = 0, 0
		}
		if err := b.respond(t, s, p.text.Message(), p.rows...); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bot) queueCommand(t *store.Txn, s author, _ string) error { return b.showQueue(t, s) }

// showQueue lists what runs and what waits.
func (b *Bot) showQueue(t *store.Txn, s author) error {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	var l lists
	if a := c.Active; a != nil {
		var m formatting.Builder
		m.Bold("Running: ").Text(promptWords(a.Prompt))
		l.add(m.Message())
	}
	if len(c.Queue) == 0 {
		l.add(formatting.Message{Text: textQueueEmpty})
		return b.sendLists(t, s, &l)
	}
	if c.WaitsFor != "" {
		l.add(formatting.Message{Text: textWaitsForFolder})
	}
	for i, p := range c.Queue {
		l.add(formatting.Message{Text: fmt.Sprintf("%d. %s", i+1, promptWords(p))},
			option{Label: fmt.Sprintf("%s %d", textTakeBack, i+1), choice: choice{Do: doUnqueue, Args: []string{p.ID, "listed"}}})
	}
	return b.sendLists(t, s, &l)
}

// promptWords is a prompt in one line.
func promptWords(p bridge.Prompt) string {
	text := formatting.Inline(p.Text, 160)
	switch n := len(p.Files); {
	case p.Resume:
		return textContinue
	case n > 0 && text == "":
		return plural(n, "file")
	case n > 0:
		return text + " (" + plural(n, "file") + ")"
	}
	return text
}

func (b *Bot) projectCommand(t *store.Txn, s author, args string) error {
	if args != "" {
		return b.chooseProject(t, s, args)
	}
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	var m formatting.Builder
	if c.Project == "" {
		m.Text(textProjectNone)
	} else {
		m.Text(textProjectNow).Bold(oneLine(c.Project)).Text(" ").Code(oneLine(c.Folder))
	}
	return b.offerProjects(t, s, &m)
}

// offerProjects ends a message with the projects to choose from.
func (b *Bot) offerProjects(t *store.Txn, s author, m *formatting.Builder) error {
	all, err := b.cfg.Chats.Projects(t)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return b.respond(t, s, formatting.Message{Text: textProjectNoneAt})
	}
	m.Text("\n" + textProjectList)
	var rows [][]option
	for _, o := range all[:min(len(all), maxOffers)] {
		rows = append(rows, []option{{Label: buttonLabel(o.Name), choice: choice{Do: doProject, Args: []string{o.Name}}}})
	}
	if n := len(all) - maxOffers; n > 0 {
		m.Text("\n" + plural(n, "more project") + textProjectMore)
	}
	return b.respond(t, s, m.Message(), rows...)
}

func (b *Bot) chooseProject(t *store.Txn, s author, name string) error {
	c, err := b.cfg.Chats.SetProject(t, s.chat.Key(), name)
	var m formatting.Builder
	switch {
	case errors.Is(err, bridge.ErrNoProject):
		m.Text(textProjectWrong)
		return b.offerProjects(t, s, &m)
	case err != nil:
		return err
	}
	m.Text(textProjectSet).Bold(oneLine(c.Project)).Text(" (").Code(oneLine(c.Folder)).Text("). " + textFreshSession)
	return b.respond(t, s, m.Message())
}

func (b *Bot) grantsCommand(t *store.Txn, s author, _ string) error {
	c, err := b.cfg.Chats.Get(t, s.chat.Key())
	if err != nil {
		return err
	}
	grants, err := b.cfg.Approvals.Grants(t.Context(), c.Host, s.chat.Key())
	if err != nil {
		return err
	}
	if len(grants) == 0 {
		return b.say(t, s.chat, s.message, textGrantsNone)
	}
	var l lists
	l.add(formatting.Message{Text: textGrants})
	for i, g := range grants {
		var m formatting.Builder
		m.Text(fmt.Sprintf("%d. ", i+1))
		grantWords(&m, g)
		m.Text(", for the " + g.Scope)
		if g.Name != "" {
			m.Text(", by " + formatting.Inline(g.Name, 64))
		}
		l.add(m.Message(), option{Label: fmt.Sprintf("Remove %d", i+1), choice: choice{Do: doRevoke, Args: []string{c.Host, g.ID}}})
	}
	return b.sendLists(t, s, &l)
}
