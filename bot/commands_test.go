package bot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"drawbridge/approvals"
	"drawbridge/bridge"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

func TestEveryCommandIsRegisteredAndExplained(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{noHost: true})
	if err := k.bot.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	var bot struct {
		Commands map[string][]struct {
			Command     string `json:"command"`
			Description string `json:"description"`
		} `json:"commands"`
	}
	k.sim("GET", "bot", nil, &bot)
	var names []string
	for _, list := range bot.Commands {
		for _, c := range list {
			names = append(names, c.Command)
			if c.Description == "" {
				t.Errorf("/%s has no description", c.Command)
			}
		}
	}
	for _, want := range []string{"start", "help", "mode", "new", "stop", "status", "project", "runtime", "grants", "pending", "queue"} {
		if !slices.Contains(names, want) {
			t.Errorf("/%s is not registered: %q", want, names)
		}
	}
	help := k.reads(ada, k.say(ada, ada, "/help")-1, textWelcome)
	for _, name := range names {
		if forGroups := commandNamed(name).anywhere; strings.Contains(help.Text, "/"+name+" – ") == forGroups {
			t.Errorf("/help says of /%s to an owner in private:\n%s", name, help.Text)
		}
	}
	viewer := k.reads(linus, k.say(linus, linus, "/help")-1, textWatcher)
	if strings.Contains(viewer.Text, "/stop") || !strings.Contains(viewer.Text, "/status") {
		t.Errorf("a viewer is told\n%s", viewer.Text)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{projects: []string{"second"}})
	for _, c := range []struct {
		from  int64
		say   string
		parts []string
	}{
		{ada, "/start", []string{textWelcome, "Project: demo (" + k.folder + ") on box", "Runtime: script", "Mode: approval-required – ", textNothingRuns}},
		{ada, "/status", []string{"Project: demo", "Mode: approval-required"}},
		{ada, "/mode", []string{"Mode of this chat: approval-required", "full-access – ", textModeAsk}},
		{ada, "/mode yolo", []string{textModeWrong, "approval-required, auto-accept-edits, auto, full-access", textModeUnchanged}},
		{ada, "/mode approval-required", []string{textModeSame + "approval-required"}},
		{ada, "/mode AUTO", []string{textModeSet + "auto: ", textModeNext}},
		{ada, "/mode default", []string{textModeSet + "approval-required"}},
		{ada, "/new", []string{textNewDone}},
		{ada, "/stop", []string{textNothingRuns}},
		{ada, "/stop session", []string{textNothingRuns, textSessionEnds}},
		{ada, "/pending", []string{textPendingNone}},
		{ada, "/queue", []string{textQueueEmpty}},
		{ada, "/grants", []string{textGrantsNone}},
		{ada, "/project", []string{"Project: demo " + k.folder, textProjectList}},
		{ada, "/project nowhere", []string{textProjectWrong, textProjectList}},
		{ada, "/project second", []string{textProjectSet + "second"}},
		{ada, "/runtime", []string{"Runtime: script", textRuntimeList}},
		{ada, "/runtime none", []string{textRuntimeWrong}},
		{ada, "/runtime other", []string{textRuntimeSet + "other"}},
		{ada, "/enable", []string{textNotHere}},
		{ada, "/disable", []string{textNotHere}},
		{ada, "/frobnicate", []string{textUnknownWord}},
		{ada, "/HELP now", []string{textWelcome}},
		{grace, "/enable", []string{textOwnersOnly}},
		{linus, "/status", []string{"Project: demo"}},
		{linus, "/stop", []string{textViewer}},
		{linus, "/mode full-access", []string{textViewer}},
		{linus, "run touch never", []string{textViewer}},
	} {
		k.reads(c.from, k.say(c.from, c.from, c.say)-1, c.parts...)
	}
	k.idle()
	if got := k.record(ChatRef{ID: ada}); got.Project != "second" || got.Runtime != "other" || got.Mode != policy.ApprovalRequired {
		t.Errorf("the chat is %+v", got)
	}
	if got := k.record(ChatRef{ID: linus}); got.Mode != policy.ApprovalRequired || k.exists("never") {
		t.Errorf("a viewer changed something: %+v", got)
	}
}

// TestOneChatOfMany: a topic is a chat of its own, and what is chosen in one is not chosen in another.
func TestOneChatOfMany(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.enable(forum)
	var topic struct {
		ID int `json:"topic"`
	}
	k.sim("POST", "topics", object{"chat": forum, "name": "Parser", "from": ada}, &topic)
	p := k.post(object{"chat": forum, "from": ada, "topic": topic.ID, "text": "/mode auto-accept-edits"})
	if m := k.reads(forum, p, textModeSet); m.Topic != topic.ID {
		t.Errorf("the answer stands in topic %d, asked in %d", m.Topic, topic.ID)
	}
	if m := k.reads(forum, k.say(forum, ada, "/status"), "Mode: approval-required"); m.Topic != 0 {
		t.Errorf("the answer to General stands in topic %d", m.Topic)
	}
	work := k.post(object{"chat": forum, "from": ada, "topic": topic.ID, "text": "write notes.txt hello\nrun touch ran"})
	card := k.reads(forum, work, "Run this command?\ntouch ran")
	if card.Topic != topic.ID {
		t.Errorf("the card stands in topic %d, asked in %d", card.Topic, topic.ID)
	}
	// The button means nothing in another topic of the same group.
	var n notice
	data := k.data(forum, card.ID, "Allow")
	k.update(func(t *store.Txn) error {
		_, ok, err := k.bot.meant(t, ChatRef{ID: forum}, data)
		if ok {
			n.text = "meant"
		}
		return err
	})
	if n.text != "" {
		t.Error("a button of a topic means something in General")
	}
	k.tap(forum, ada, card.ID, "Allow")
	k.becomes(forum, card.ID, "Allowed by Ada")
	k.reads(forum, work, "Done in")
	k.idle()
	for _, m := range k.rig.chat(forum) {
		if m.ID > work && m.Topic != topic.ID {
			t.Errorf("%q stands in topic %d", m.Text, m.Topic)
		}
	}
}

func TestMenusChangeInPlace(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{projects: []string{"second"}})
	menu := k.reads(ada, k.say(ada, ada, "/mode"), textModeAsk)
	if got := k.tap(ada, ada, menu.ID, "• approval-required"); got.Text != textModeSame+"approval-required" {
		t.Errorf("the same mode was answered with %+v", got)
	}
	k.tap(ada, ada, menu.ID, "auto-accept-edits")
	k.becomes(ada, menu.ID, textModeSet+"auto-accept-edits")

	menu = k.reads(ada, k.say(ada, ada, "/project"), textProjectList)
	k.tap(ada, ada, menu.ID, "second")
	k.becomes(ada, menu.ID, textProjectSet+"second")

	menu = k.reads(ada, k.say(ada, ada, "/runtime"), textRuntimeList)
	k.tap(ada, ada, menu.ID, "other")
	k.becomes(ada, menu.ID, textRuntimeSet+"other")
	if got := k.record(ChatRef{ID: ada}); got.Project != "second" || got.Runtime != "other" || got.Mode != policy.AutoAcceptEdits {
		t.Errorf("the chat is %+v", got)
	}
}

// TestListsKeepTelegramsLimits: a hundred buttons and 4096 characters are the most of a message.
func TestListsKeepTelegramsLimits(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 130 {
		many = append(many, fmt.Sprintf("p%03d", i))
	}
	k := newTalk(t, talkOptions{projects: many})
	menu := k.reads(ada, k.say(ada, ada, "/project"), textProjectList)
	if n := len(menu.labels()); n != maxOffers || !strings.Contains(menu.Text, "91 more projects"+textProjectMore) {
		t.Errorf("%d buttons under\n%s", n, menu.Text)
	}

	chat := ChatRef{ID: ada}
	k.update(func(t *store.Txn) error {
		var gs approvals.Grants
		for i := range 120 {
			gs.Grants = append(gs.Grants, approvals.Grant{
				V: 1, ID: strconv.Itoa(i), Scope: approvals.ScopeProject, Project: "demo", Folder: k.folder,
				Command: fmt.Sprintf("make target-%d %s", i, strings.Repeat("x", 100)), Name: "Ada",
			})
		}
		return store.Put(t, approvals.GrantsKey("box", chat.Key()), gs)
	})
	first := k.say(ada, ada, "/grants")
	k.reads(ada, first, "120. ")
	buttons := 0
	for _, m := range k.rig.chat(ada) {
		if m.ID > first {
			buttons += len(m.labels())
		}
	}
	if buttons != 120 {
		t.Errorf("120 grants have %d buttons to remove them", buttons)
	}

	k.update(func(t *store.Txn) error {
		c, err := k.chats.Get(t, chat.Key())
		if err != nil {
			return err
		}
		for i := range bridge.MaxQueue {
			c.Queue = append(c.Queue, bridge.Prompt{ID: strconv.Itoa(i), Text: strings.Repeat("😀", 4000)})
		}
		return store.Put(t, "g:chat:"+chat.Key(), c)
	})
	first = k.say(ada, ada, "/queue")
	k.reads(ada, first, "20. ")
	buttons = 0
	for _, m := range k.rig.chat(ada) {
		if m.ID > first {
			buttons += len(m.labels())
			if m.Document != nil {
				t.Error("the queue came as a file")
			}
		}
	}
	if buttons != bridge.MaxQueue {
		t.Errorf("%d prompts have %d buttons to take them back", bridge.MaxQueue, buttons)
	}
}

// TestKeyboardsAreNeverRefused: what an agent chooses as labels and styles can't make Telegram refuse all buttons.
func TestKeyboardsAreNeverRefused(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{noHost: true})
	k.reads(ada, k.say(ada, ada, "/help"), "/mode") // a person writes first
	var rows [][]option
	for i := range 150 {
		rows = append(rows, []option{{Label: []string{"", " ", "\u200b", "ok"}[i%4], Style: "sparkling", choice: choice{Do: doMode, Args: []string{"auto"}}}})
	}
	k.update(func(t *store.Txn) error { return k.bot.send(t, ChatRef{ID: ada}, 0, "", mustText("many"), rows...) })
	m := k.reads(ada, 0, "many")
	if n := len(m.labels()); n != maxButtons || m.labels()[0] != textBlankLabel {
		t.Errorf("%d buttons, the first one %q", n, m.labels()[:1])
	}
}

func TestCommandsForOthersAreNotObeyed(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{})
	k.enable(group)
	me, err := k.api.Me(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start := k.say(group, ada, "/mode@"+me.Username+" auto-accept-edits")
	k.reads(group, start, textModeSet+"auto-accept-edits")
	for _, text := range []string{"/mode@otherbot auto", "/new@OtherBot", "/unknown@otherbot"} {
		k.say(group, ada, text)
	}
	k.say(group, ada, "/tmp/x is a path")
	k.reads(group, start, "/tmp/x is a path") // said back by the script
	k.idle()
	if got := k.record(ChatRef{ID: group}); got.Mode != policy.AutoAcceptEdits {
		t.Errorf("the mode is %s", got.Mode)
	}
	for _, m := range k.rig.chat(group) {
		if strings.Contains(m.Text, "otherbot") || strings.Contains(m.Text, textUnknownWord) {
			t.Errorf("the bot said %q", m.Text)
		}
	}
}

// TestModeSaysWhoReviews: with no reviewer people are told that they are asked, with one which model decides.
func TestModeSaysWhoReviews(t *testing.T) {
	t.Parallel()
	for reviewer, words := range map[string]string{
		"": "this host has no reviewer, so you are asked", "small-1": "the reviewer, the model small-1, decides about commands",
	} {
		k := newTalk(t, talkOptions{reviewer: reviewer})
		k.reads(ada, k.say(ada, ada, "/mode auto"), textModeSet, words)
		k.reads(ada, k.say(ada, ada, "/mode"), words)
		k.reads(ada, k.say(ada, ada, "/status"), words)
	}
}

func TestModeSaysWhatARuntimeMakesOfIt(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{capable: func(c *runner.Capability) {
		c.Modes[policy.Auto], c.Why = policy.ApprovalRequired, map[string]string{"auto": "it has no reviewer"}
	}, mode: policy.Auto})
	for _, say := range []string{"/mode", "/status"} {
		k.reads(ada, k.say(ada, ada, say), textEffective+"approval-required: it has no reviewer")
	}
	k.reads(ada, k.say(ada, ada, "/mode approval-required")-1, textModeSet)
	menu := k.reads(ada, k.say(ada, ada, "/mode"), "auto – works as approval-required here: it has no reviewer")
	if got := k.tap(ada, ada, menu.ID, markCannot+"auto"); got.Text != "it has no reviewer" || !got.Alert {
		t.Errorf("the button for what can't be done answers %+v", got)
	}
	k.reads(ada, k.say(ada, ada, "/mode auto"), textModeSet+"auto: works as approval-required here: it has no reviewer")
	prompt := k.say(ada, ada, "run touch asked")
	k.reads(ada, prompt, "Run this command?", "Mode: auto (effective with script: approval-required, because it has no reviewer)")
}

// TestModeNamesTheCellsThatAreNotHeld: there is no looser cell that a chat is not told of, each with the modes that it is of;
// whoever chooses a mode is told those of that mode alone.
func TestModeNamesTheCellsThatAreNotHeld(t *testing.T) {
	t.Parallel()
	k := newTalk(t, talkOptions{mode: policy.Auto, capable: func(c *runner.Capability) {
		c.Looser = []runner.Difference{
			{Category: policy.Secret, Modes: []policy.Mode{policy.Auto}, What: "It reads .env files of the project."},
			{Category: policy.Delete, Modes: []policy.Mode{policy.Auto}, What: "It reads .env files of the project."},
			{Category: policy.Delete, Modes: []policy.Mode{policy.AutoAcceptEdits}, What: "Something of another mode."},
			{Category: policy.Unknown, Modes: policy.Modes(), Plan: true, Part: true, What: "It reads resources."},
		}
		c.Stricter = []runner.Difference{{Category: policy.ReadOutside, Modes: policy.Modes(), Plan: true, What: "It reads nothing elsewhere."}}
	}})
	m := k.reads(ada, k.say(ada, ada, "/mode"), textLooser+"script:", "• It reads .env files of the project. (auto)",
		"• Something of another mode. (auto-accept-edits)", "• It reads resources. (approval-required, auto-accept-edits, auto, full-access, plan)",
		textStricter+"script:", "(approval-required, auto-accept-edits, auto, full-access, plan)")
	if strings.Count(m.Text, ".env") != 1 {
		t.Errorf("/mode says\n%s", m.Text)
	}
	m = k.reads(ada, k.say(ada, ada, "/mode auto-accept-edits"), textModeSet, "• Something of another mode.", "• It reads nothing elsewhere.")
	if strings.Contains(m.Text, ".env") {
		t.Errorf("the chosen mode is told as\n%s", m.Text)
	}
	m = k.reads(ada, k.say(ada, ada, "/mode full-access"), textFullTitle, "With script, the agent then runs commands", "• It reads resources.", "• It reads nothing elsewhere.")
	if strings.Contains(m.Text, ".env") || strings.Contains(m.Text, "another mode") || strings.Contains(m.Text, "reads elsewhere") {
		t.Errorf("the confirmation says\n%s", m.Text)
	}
}
