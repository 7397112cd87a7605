package bot

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"drawbridge/bridge"
	"drawbridge/bridge/task"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/runner"
)

// What the buttons of schedules do, as choice.Do.
const (
	doSchedules     = "schedules"       // the list
	doSchedule      = "schedule"        // schedule: its page
	doScheduleRun   = "schedule-run"    // schedule
	doSchedulePause = "schedule-pause"  // schedule
	doScheduleGo    = "schedule-resume" // schedule
	doScheduleDrop  = "schedule-delete" // schedule
)

// maxSchedules is how many a list shows.
const maxSchedules = 30

func (b *Bot) cronCommand(t *store.Txn, s author, args string) error {
	word, rest := firstWord(args)
	switch strings.ToLower(word) {
	case "", "list":
		return b.showSchedules(t, s)
	case "edit":
		return b.editSchedule(t, s, rest)
	case "add":
		args = rest
	}
	line, prompt := cronLine(args)
	return b.plan(t, s, prompt, textCronHelp, func(zone string, now time.Time) (task.Spec, error) { return task.ParseCron(line, zone, now) })
}

func (b *Bot) atCommand(t *store.Txn, s author, args string) error {
	at, prompt := timeOf(args)
	return b.plan(t, s, prompt, textAtHelp, func(zone string, now time.Time) (task.Spec, error) { return task.ParseAt(at, zone, now) })
}

func (b *Bot) inCommand(t *store.Txn, s author, args string) error {
	in, prompt := firstWord(args)
	return b.plan(t, s, prompt, textInHelp, func(_ string, now time.Time) (task.Spec, error) { return task.ParseIn(in, now) })
}

func (b *Bot) everyCommand(t *store.Txn, s author, args string) error {
	every, prompt := firstWord(args)
	until := ""
	if word, rest := firstWord(prompt); strings.EqualFold(word, "until") {
		until, prompt = timeOf(rest)
	}
	return b.plan(t, s, prompt, textEveryHelp, func(zone string, now time.Time) (task.Spec, error) { return task.ParseEvery(every, until, zone, now) })
}

// plan adds a schedule of one prompt and says back what it means.
func (b *Bot) plan(t *store.Txn, s author, text, help string, read readTimes) error {
	w, missed, prompt, err := workOptions(text)
	switch {
	case err != nil:
		return b.say(t, s.chat, s.message, textFlagsHelp+strings.TrimPrefix(err.Error(), errOption.Error()+": ")+textFlagsKnown)
	case prompt == "":
		return b.say(t, s.chat, s.message, help)
	}
	set, err := b.cfg.Tasks.Settings(t, s.chat.Key())
	if err != nil {
		return err
	}
	now, err := t.Now()
	if err != nil {
		return err
	}
	spec, err := read(set.Zone, now)
	if err != nil {
		return b.refuseWork(t, s, set.Zone, err)
	}
	if err := b.place(t, &w); err != nil {
		return b.refuseWork(t, s, set.Zone, err)
	}
	w.Steps, w.By, w.Name = []string{prompt}, strconv.FormatInt(s.ID, 10), s.Name
	sch, err := b.cfg.Tasks.AddSchedule(t, s.chat.Key(), task.NewSchedule{ID: "u" + strconv.FormatInt(s.update, 36), Work: w, Spec: spec, Missed: missed})
	if err != nil {
		return b.refuseWork(t, s, set.Zone, err)
	}
	var m formatting.Builder
	m.Text(textScheduled)
	b.describe(&m, sch)
	m.Text("\n" + textMode).Bold(string(sch.Mode)).Text(textScheduleAsks)
	return b.send(t, s.chat, s.message, "", m.Message(), scheduleButtons(sch, false)...)
}

// refuseWork says why nothing was planned. What is not a person's mistake stays an error.
func (b *Bot) refuseWork(t *store.Txn, s author, zone string, err error) error {
	words, err := workFault(zone, err)
	if err != nil {
		return err
	}
	return b.say(t, s.chat, s.message, words)
}

// workFault is why work can't be planned, in words. What is not the mistake of whoever wants it stays an error.
func workFault(zone string, err error) (string, error) {
	var refused *task.SpecError
	switch {
	case errors.As(err, &refused):
		loc, zoneErr := task.Zone(zone)
		if zoneErr != nil {
			return "", zoneErr
		}
		var next []string
		for _, at := range refused.Next {
			next = append(next, at.In(loc).Format("Mon 2 Jan 15:04:05"))
		}
		text := specFault(refused.Err)
		if len(next) > 0 {
			text += "\n" + textThen + strings.Join(next, ", ")
		}
		return text, nil
	case errors.Is(err, errNowhere):
		return textNoSuchProject, nil
	case errors.Is(err, bridge.ErrNoProject):
		return textProjectNone, nil
	case errors.Is(err, bridge.ErrNoRuntime), errors.Is(err, bridge.ErrNoHost):
		return textNoRuntime, nil
	case errors.Is(err, task.ErrMode):
		return textNotLooser, nil
	case errors.Is(err, task.ErrTooMany):
		return textTooMany, nil
	case errors.Is(err, task.ErrTooLong):
		return textTooMuch, nil
	case errors.Is(err, task.ErrEmpty):
		return textNothingToDo, nil
	case errors.Is(err, task.ErrNotFound):
		return textScheduleGone, nil
	case errors.Is(err, task.ErrZone):
		return textZoneWrong, nil
	}
	return "", err
}

// describe writes what a schedule does, when, and its next times.
func (b *Bot) describe(m *formatting.Builder, sch task.Schedule) {
	loc, err := task.Zone(sch.Zone)
	if err != nil {
		loc = time.UTC
	}
	m.Bold(oneLine(sch.Title)).Text("\n" + upper(specWords(sch.Spec, loc)) + " (" + loc.String() + ")")
	next := sch.Upcoming(comingTimes)
	switch {
	case sch.State == task.Paused:
		m.Text("\n" + textPaused)
		if why := whyWords(sch.Why); why != "" && sch.Why != task.WhyPaused {
			m.Text(": " + why)
		}
	case len(next) == 0:
		m.Text("\n" + textScheduleEnded)
	default:
		m.Text("\n" + textNext + coming(next, loc))
	}
}

// comingTimes is how many of the times to come are said.
const comingTimes = 3

func coming(times []time.Time, loc *time.Location) string {
	var out []string
	for _, at := range times {
		out = append(out, at.In(loc).Format("Mon 2 Jan 15:04"))
	}
	return strings.Join(out, ", ")
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func scheduleButtons(sch task.Schedule, listed bool) [][]option {
	one := func(label, do string) option {
		return option{Label: label, choice: choice{Do: do, Args: []string{sch.ID}}}
	}
	row := []option{one(textRunNow, doScheduleRun)}
	switch sch.State {
	case task.Active:
		row = append(row, one(textPause, doSchedulePause))
	case task.Paused:
		row = append(row, one(textGoOn, doScheduleGo))
	case task.Over:
	}
	drop := one(textDelete, doScheduleDrop)
	drop.Style = string(runner.StyleDanger)
	rows := [][]option{append(row, drop)}
	if listed {
		rows = append(rows, []option{{Label: textEdit, Copy: "/cron edit " + sch.ID + " "}, {Label: textBack, choice: choice{Do: doSchedules}}})
	}
	return rows
}

func (b *Bot) showSchedules(t *store.Txn, s author) error {
	all, err := b.cfg.Tasks.Schedules(t, s.chat.Key())
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return b.respond(t, s, formatting.Message{Text: textScheduleNone})
	}
	var m formatting.Builder
	m.Text(textScheduleAll)
	var rows [][]option
	for i, sch := range all {
		if i == maxSchedules {
			m.Text("\n… " + plural(len(all)-i, "more"))
			break
		}
		m.Text(fmt.Sprintf("\n\n%d. ", i+1))
		b.describe(&m, sch)
		rows = append(rows, []option{{
			Label: fmt.Sprintf("%d. %s", i+1, buttonLabel(sch.Title)), choice: choice{Do: doSchedule, Args: []string{sch.ID, "listed"}},
		}})
	}
	return b.respond(t, s, m.Split()[0], rows...)
}

// scheduleOf returns a schedule of this chat; false if there is none, for buttons outlive what they stand for.
func (b *Bot) scheduleOf(t *store.Txn, s author, id string) (task.Schedule, bool, error) {
	sch, err := b.cfg.Tasks.Schedule(t, id)
	if errors.Is(err, task.ErrNotFound) {
		return sch, false, nil
	}
	return sch, err == nil && sch.Chat == s.chat.Key(), err
}

func (b *Bot) scheduleTap(t *store.Txn, s author, do, id string) (notice, error) {
	sch, ok, err := b.scheduleOf(t, s, id)
	if err != nil {
		return notice{}, err
	}
	if !ok {
		return notice{textScheduleGone, true}, b.respond(t, s, formatting.Message{Text: textScheduleGone})
	}
	n := notice{text: tapDone}
	switch do {
	case doScheduleRun:
		_, began, err := b.cfg.Tasks.RunNow(t, id, s.Name)
		if !began {
			return notice{textRunsAlready, true}, err
		}
		return notice{text: textRunStarted}, err
	case doSchedulePause:
		sch, _, err = b.cfg.Tasks.Pause(t, id, task.WhyPaused)
	case doScheduleGo:
		sch, _, err = b.cfg.Tasks.Resume(t, id)
	case doScheduleDrop:
		if _, err := b.cfg.Tasks.DeleteSchedule(t, id); err != nil {
			return notice{}, err
		}
		return notice{text: textDeleted}, b.respond(t, s, formatting.Message{Text: textDeleted + " " + oneLine(sch.Title)})
	}
	if err != nil {
		return notice{}, err
	}
	var m formatting.Builder
	b.describe(&m, sch)
	for i, step := range sch.Steps {
		m.Text("\n").Quote(formatting.Inline(step, 600))
		if i == 4 {
			break
		}
	}
	m.Text("\n" + textMode).Bold(string(sch.Mode)).Text(textScheduleAsks).Text("\n/cron edit ").Code(sch.ID)
	return n, b.respond(t, s, m.Split()[0], scheduleButtons(sch, true)...)
}

// readTimes reads when something is done, in a zone, as it is at now.
type readTimes func(zone string, now time.Time) (task.Spec, error)

// newTimes reads the times in front of a prompt where there are any: a cron line in quotes, or --at, --in or --every.
func newTimes(text string) (read readTimes, prompt string) {
	word, rest := firstWord(text)
	if word == "" {
		return nil, text
	}
	switch strings.Replace(word, "—", "--", 1) {
	case "--at":
		at, rest := timeOf(rest)
		return func(zone string, now time.Time) (task.Spec, error) { return task.ParseAt(at, zone, now) }, rest
	case "--in":
		in, rest := firstWord(rest)
		return func(_ string, now time.Time) (task.Spec, error) { return task.ParseIn(in, now) }, rest
	case "--every":
		every, rest := firstWord(rest)
		until := ""
		if word, tail := firstWord(rest); strings.EqualFold(word, "until") {
			until, rest = timeOf(tail)
		}
		return func(zone string, now time.Time) (task.Spec, error) { return task.ParseEvery(every, until, zone, now) }, rest
	}
	if first, _ := utf8.DecodeRuneInString(word); !strings.ContainsRune(quotes, first) {
		return nil, text
	}
	line, rest := cronLine(text)
	return func(zone string, now time.Time) (task.Spec, error) { return task.ParseCron(line, zone, now) }, rest
}

// editSchedule gives a schedule other times, another prompt, or both; its mode and its time zone stay.
func (b *Bot) editSchedule(t *store.Txn, s author, args string) error {
	id, rest := firstWord(args)
	read, prompt := newTimes(rest)
	if read == nil && prompt == "" {
		return b.say(t, s.chat, s.message, textEditHelp)
	}
	sch, ok, err := b.scheduleOf(t, s, strings.ToLower(id))
	if err != nil {
		return err
	}
	if !ok {
		return b.say(t, s.chat, s.message, textScheduleGone)
	}
	var steps []string
	if prompt != "" {
		steps = []string{prompt}
	}
	var spec *task.Spec
	if read != nil {
		now, err := t.Now()
		if err != nil {
			return err
		}
		times, err := read(sch.Zone, now)
		if err != nil {
			return b.refuseWork(t, s, sch.Zone, err)
		}
		spec = &times
	}
	zone := sch.Zone
	if sch, err = b.cfg.Tasks.EditSchedule(t, strings.ToLower(id), steps, spec); err != nil {
		return b.refuseWork(t, s, zone, err)
	}
	var m formatting.Builder
	b.describe(&m, sch)
	return b.send(t, s.chat, s.message, "", m.Message(), scheduleButtons(sch, false)...)
}

func (b *Bot) timezoneCommand(t *store.Txn, s author, args string) error {
	set, err := b.cfg.Tasks.Settings(t, s.chat.Key())
	if err != nil {
		return err
	}
	if args == "" {
		return b.say(t, s.chat, s.message, textZoneNow+set.Zone+".")
	}
	set.Zone = args
	switch err := b.cfg.Tasks.SetSettings(t, s.chat.Key(), set); {
	case errors.Is(err, task.ErrZone):
		return b.say(t, s.chat, s.message, textZoneWrong)
	case err != nil:
		return err
	}
	return b.say(t, s.chat, s.message, textZoneNow+set.Zone+textZoneSet)
}

func (b *Bot) quietCommand(t *store.Txn, s author, args string) error {
	set, err := b.cfg.Tasks.Settings(t, s.chat.Key())
	if err != nil {
		return err
	}
	said := func() string {
		if set.Quiet == nil {
			return textQuietNone
		}
		of := func(m int) string { return fmt.Sprintf("%02d:%02d", m/60, m%60) }
		return textQuietNow + of(set.Quiet.From) + "–" + of(set.Quiet.To) + " (" + set.Zone + ")."
	}
	switch strings.ToLower(args) {
	case "":
		return b.say(t, s.chat, s.message, said())
	case "off":
		set.Quiet = nil
		if err := b.cfg.Tasks.SetSettings(t, s.chat.Key(), set); err != nil {
			return err
		}
		return b.say(t, s.chat, s.message, textQuietOff)
	}
	from, to, ok := strings.Cut(strings.ReplaceAll(args, "–", "-"), "-")
	begin, err := time.Parse("15:04", strings.TrimSpace(from))
	end, endErr := time.Parse("15:04", strings.TrimSpace(to))
	if cmp.Or(err, endErr) != nil || !ok || begin.Equal(end) {
		return b.say(t, s.chat, s.message, textQuietWrong)
	}
	minutes := func(at time.Time) int { return at.Hour()*60 + at.Minute() }
	set.Quiet = &bridge.Quiet{From: minutes(begin), To: minutes(end), Zone: set.Zone}
	if err := b.cfg.Tasks.SetSettings(t, s.chat.Key(), set); err != nil {
		return err
	}
	return b.say(t, s.chat, s.message, said())
}
