package bot

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"drawbridge/bridge"
	"drawbridge/bridge/task"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
)

// quotes are the marks that a phone makes of those that are typed.
const quotes = "\"“”„«»'‘’`"

// cronLine takes the line in front of a prompt apart: in quotation marks of any kind, a word such as @daily, or its five
// fields.
func cronLine(text string) (line, rest string) {
	text = strings.TrimSpace(text)
	if first, size := utf8.DecodeRuneInString(text); size > 0 && strings.ContainsRune(quotes, first) {
		if end := strings.IndexAny(text[size:], quotes); end >= 0 {
			_, closing := utf8.DecodeRuneInString(text[size+end:])
			return text[size : size+end], strings.TrimSpace(text[size+end+closing:])
		}
	}
	fields := 5
	if strings.HasPrefix(text, "@") {
		fields = 1
	}
	rest = text
	for range fields {
		word, tail := firstWord(rest)
		line, rest = strings.TrimSpace(line+" "+word), tail
	}
	return line, rest
}

func firstWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

// timeOf takes a time of day, or a date and one, from the front of a text.
func timeOf(text string) (at, rest string) {
	at, rest = firstWord(text)
	if _, err := time.Parse("2006-01-02", at); err == nil {
		clock, tail := firstWord(rest)
		return at + " " + clock, tail
	}
	return at, rest
}

// errNowhere says that a project that was named for work is not there.
var errNowhere = errors.New("bot: no such project")

// errOption says that a word that looks like an option is none.
var errOption = errors.New("bot: unknown option")

// workOptions reads the options in front of a prompt. Phones make one long dash of two hyphens.
func workOptions(text string) (w task.Work, missed task.Missed, prompt string, err error) {
	prompt = strings.TrimSpace(text)
	for {
		word, rest := firstWord(prompt)
		name, ok := strings.CutPrefix(strings.Replace(word, "—", "--", 1), "--")
		if !ok {
			return w, missed, prompt, nil
		}
		switch name {
		case "here":
			w.InChat = true
		case "skip":
			missed = task.Skip
		case "review":
			w.Execution = task.Review
		case "auto":
			w.Execution = task.Auto
		case "follow":
			w.Follow = task.FollowOn
		case "no-follow":
			w.Follow = task.FollowOff
		case "project":
			w.Project, rest = firstWord(rest)
		case "runtime":
			w.Runtime, rest = firstWord(rest)
		case "careful":
			w.Careful = true
		case "mode":
			mode, tail := firstWord(rest)
			if w.Mode, err = policy.ParseMode(mode); err != nil {
				return w, missed, prompt, fmt.Errorf("%w: --mode %s", errOption, formatting.Inline(mode, 40))
			}
			rest = tail
		case "budget":
			n, tail := firstWord(rest)
			if w.Budget, err = strconv.ParseInt(n, 10, 64); err != nil || w.Budget <= 0 {
				return w, missed, prompt, fmt.Errorf("%w: --budget %s", errOption, formatting.Inline(n, 40))
			}
			rest = tail
		default:
			return w, missed, prompt, fmt.Errorf("%w: %s", errOption, formatting.Inline(word, 40))
		}
		if w.InChat && (w.Project != "" || w.Runtime != "") {
			return w, missed, prompt, fmt.Errorf("%w: --here with another project or runtime", errOption)
		}
		prompt = rest
	}
}

// place finds the host of the project that was named for work, and the runtime that is usual there.
func (b *Bot) place(t *store.Txn, w *task.Work) error {
	if w.Project == "" {
		return nil
	}
	p, host, err := b.cfg.Chats.Find(t, w.Project)
	if errors.Is(err, bridge.ErrNoProject) {
		return errNowhere
	}
	if err != nil {
		return err
	}
	w.Host, w.Project, w.Runtime = host, p.Name, cmp.Or(w.Runtime, p.Runtime)
	return nil
}

// specWords says a schedule's times in plain words.
func specWords(s task.Spec, loc *time.Location) string {
	switch {
	case s.Cron != "":
		return cronWords(s.Cron)
	case s.Every > 0:
		words := "every " + elapsed(s.Every)
		if !s.Until.IsZero() {
			words += " until " + clock(s.Until, loc)
		}
		return words
	}
	return "once, " + clock(s.At, loc)
}

// clock is a moment as a clock in loc shows it.
func clock(at time.Time, loc *time.Location) string { return at.In(loc).Format("Mon 2 Jan 2006 15:04") }

// cronWords says a cron line of five fields in plain words, as closely as they allow.
func cronWords(line string) string {
	f := strings.Fields(line)
	if len(f) != 5 {
		return strings.TrimPrefix(line, "@")
	}
	words := []string{cronTime(f[0], f[1])}
	switch {
	case f[2] == "*" && isAny(f[4]):
		if hour, err := strconv.Atoi(f[1]); err == nil && hour >= 0 {
			words = append(words, "every day")
		}
	case f[2] == "*":
		words = append(words, "on "+named(f[4], dayName))
	case isAny(f[4]):
		words = append(words, "on day "+spaced(f[2])+" of the month")
	default:
		words = append(words, "on day "+spaced(f[2])+" of the month and on "+named(f[4], dayName))
	}
	if f[3] != "*" {
		words = append(words, "in "+named(f[3], monthName))
	}
	return strings.Join(words, " ")
}

func isAny(field string) bool { return field == "*" || field == "?" }

func spaced(field string) string { return strings.ReplaceAll(field, ",", ", ") }

// cronTime is the part of the words that says when within a day.
func cronTime(minute, hour string) string {
	m, minuteErr := strconv.Atoi(minute)
	h, hourErr := strconv.Atoi(hour)
	everyMinutes, eachMinutes := strings.CutPrefix(minute, "*/")
	everyHours, eachHours := strings.CutPrefix(hour, "*/")
	switch {
	case minuteErr == nil && hourErr == nil:
		return fmt.Sprintf("at %02d:%02d", h, m)
	case minute == "*" && hour == "*":
		return "every minute"
	case eachMinutes && hour == "*":
		return "every " + everyMinutes + " minutes"
	case minuteErr == nil && hour == "*":
		return fmt.Sprintf("at minute %d of every hour", m)
	case minuteErr == nil && eachHours:
		return fmt.Sprintf("at minute %d of every %s. hour", m, everyHours)
	case minuteErr == nil && strings.Trim(hour, "0123456789,") == "":
		var at []string
		for one := range strings.SplitSeq(hour, ",") {
			n, err := strconv.Atoi(one)
			if err != nil {
				return "in the hours " + spaced(hour) + ", at minute " + minute
			}
			at = append(at, fmt.Sprintf("%02d:%02d", n, m))
		}
		return "at " + strings.Join(at, ", ")
	case eachMinutes:
		return "every " + everyMinutes + " minutes in the hours " + spaced(hour)
	case minute == "*":
		return "every minute in the hours " + spaced(hour)
	}
	return "at the minutes " + spaced(minute) + " of the hours " + spaced(hour)
}

// named puts names in the place of numbers.
func named(field string, name func(string) string) string {
	var parts []string
	for part := range strings.SplitSeq(field, ",") {
		if from, to, ok := strings.Cut(part, "-"); ok && !strings.Contains(to, "/") {
			parts = append(parts, name(from)+" to "+name(to))
			continue
		}
		parts = append(parts, name(part))
	}
	return strings.Join(parts, ", ")
}

func dayName(s string) string {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 && n <= 7 {
		return time.Weekday(n % 7).String()
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(s, d.String()[:3]) {
			return d.String()
		}
	}
	return s
}

func monthName(s string) string {
	if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= 12 {
		return time.Month(n).String()
	}
	for m := time.January; m <= time.December; m++ {
		if strings.EqualFold(s, m.String()[:3]) {
			return m.String()
		}
	}
	return s
}
