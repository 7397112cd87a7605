package task

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // time zones are the chats', and a machine may have none

	"github.com/robfig/cron/v3"
)

// Spec says when a schedule fires: by Cron, once At, or Every from From until Until.
type Spec struct {
	Cron  string        `json:"cron,omitempty"` // five fields, in the schedule's zone
	At    time.Time     `json:"at,omitzero"`
	Every time.Duration `json:"every,omitempty"`
	From  time.Time     `json:"from,omitzero"`
	Until time.Time     `json:"until,omitzero"` // the last time that may be fired; zero for no end
}

// Faults of a spec.
var (
	ErrSpec     = errors.New("task: not a time") // it can't be read
	ErrTooOften = errors.New("task: more than once a minute")
	ErrPast     = errors.New("task: in the past")
	ErrNever    = errors.New("task: never")
	ErrZone     = errors.New("task: unknown time zone")
)

// SpecError is a spec that is refused. Next are the first times that it would have meant, if it means any.
type SpecError struct {
	Err  error // one of the faults above
	Next []time.Time
}

func (e *SpecError) Error() string { return e.Err.Error() }

func (e *SpecError) Unwrap() error { return e.Err }

const (
	minEvery = time.Minute
	maxAhead = 5 * 366 * 24 * time.Hour // a time that is further away counts as none
)

// parser also takes seconds, and words such as @daily, so that what is refused can be said back.
func parser() cron.Parser {
	return cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
}

// ParseCron reads a cron line as it would be meant in zone. What is wrong or fires more than once a minute is a *SpecError.
func ParseCron(line, zone string, now time.Time) (Spec, error) {
	loc, err := Zone(zone)
	if err != nil {
		return Spec{}, err
	}
	line = strings.Join(strings.Fields(line), " ")
	if strings.Contains(line, "TZ=") || len(line) > 200 { // the zone is the chat's
		return Spec{}, &SpecError{Err: ErrSpec}
	}
	sched, err := parser().Parse(line)
	if err != nil {
		return Spec{}, &SpecError{Err: ErrSpec}
	}
	s := Spec{Cron: line}
	if d, ok := sched.(cron.ConstantDelaySchedule); ok { // @every
		s = Spec{Every: d.Delay, From: now}
	}
	return s, s.Check(loc, now)
}

// ParseAt reads a time of day, today or tomorrow, or a date with one: "18:30", "2026-12-24 18:30".
func ParseAt(text, zone string, now time.Time) (Spec, error) {
	loc, err := Zone(zone)
	if err != nil {
		return Spec{}, err
	}
	text = strings.TrimSpace(text)
	local := now.In(loc)
	if clock, err := time.Parse("15:04", text); err == nil {
		at := time.Date(local.Year(), local.Month(), local.Day(), clock.Hour(), clock.Minute(), 0, 0, loc)
		if !at.After(now) {
			at = time.Date(local.Year(), local.Month(), local.Day()+1, clock.Hour(), clock.Minute(), 0, 0, loc)
		}
		return Spec{At: at.UTC()}, nil
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02T15:04"} {
		if at, err := time.ParseInLocation(layout, text, loc); err == nil {
			s := Spec{At: at.UTC()}
			return s, s.Check(loc, now)
		}
	}
	return Spec{}, &SpecError{Err: ErrSpec}
}

// ParseIn reads how long to wait: "20m", "1h30m", "2d".
func ParseIn(text string, now time.Time) (Spec, error) {
	d, err := ParseDuration(text)
	if err != nil || d <= 0 {
		return Spec{}, &SpecError{Err: ErrSpec}
	}
	s := Spec{At: now.Add(d).UTC()}
	return s, s.Check(time.UTC, now)
}

// ParseEvery reads an interval, and until when as ParseAt does; empty for no end. The first time is one interval from now.
func ParseEvery(every, until, zone string, now time.Time) (Spec, error) {
	loc, err := Zone(zone)
	if err != nil {
		return Spec{}, err
	}
	d, err := ParseDuration(every)
	if err != nil || d <= 0 {
		return Spec{}, &SpecError{Err: ErrSpec}
	}
	s := Spec{Every: d, From: now.UTC()}
	if until != "" {
		end, err := ParseAt(until, zone, now)
		if err != nil {
			return Spec{}, err
		}
		s.Until = end.At
	}
	return s, s.Check(loc, now)
}

// ParseDuration is time.ParseDuration, with days.
func ParseDuration(text string) (time.Duration, error) {
	text = strings.ReplaceAll(strings.TrimSpace(text), " ", "")
	var days time.Duration
	if n, rest, ok := strings.Cut(text, "d"); ok {
		count := 0
		if _, err := fmt.Sscanf(n, "%d", &count); err != nil || fmt.Sprint(count) != n || count < 0 || count > 3660 {
			return 0, ErrSpec
		}
		days, text = time.Duration(count)*24*time.Hour, rest
		if text == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxAhead {
		return 0, ErrSpec
	}
	return days + d, nil
}

// Zone is a time zone by its name in the IANA database; empty is UTC. ErrZone.
func Zone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, ErrZone
	}
	return loc, nil
}

// Check says why a spec is refused; nil if it is not.
func (s Spec) Check(loc *time.Location, now time.Time) error {
	next := s.Times(loc, now, 3)
	refuse := func(err error) error { return &SpecError{Err: err, Next: next} }
	switch {
	case s.Every != 0 && s.Every < minEvery:
		return refuse(ErrTooOften)
	case s.Cron != "" && len(strings.Fields(s.Cron)) > 5 && s.often():
		return refuse(ErrTooOften)
	case !s.At.IsZero() && !s.At.After(now):
		return refuse(ErrPast)
	case len(next) == 0:
		return refuse(ErrNever)
	}
	return nil
}

// often reports whether a line with seconds names several seconds of a minute.
func (s Spec) often() bool {
	sched, err := parser().Parse(s.Cron)
	spec, ok := sched.(*cron.SpecSchedule)
	if err != nil || !ok {
		return true
	}
	second := spec.Second << 4 >> 4 // without the mark of a star
	return second&(second-1) != 0
}

// Times are the next n times after a moment, fewer if there are no more.
func (s Spec) Times(loc *time.Location, after time.Time, n int) []time.Time {
	var out []time.Time
	next := s.from(loc)
	for range n {
		at, ok := next(after)
		if !ok {
			break
		}
		out = append(out, at)
		after = at
	}
	return out
}

// Next is the first time after a moment, and false if there is none.
func (s Spec) Next(loc *time.Location, after time.Time) (time.Time, bool) { return s.from(loc)(after) }

// from reads the spec once, for many times.
func (s Spec) from(loc *time.Location) func(after time.Time) (time.Time, bool) {
	at := func(time.Time) time.Time { return s.At }
	switch {
	case s.Cron != "":
		sched, err := parser().Parse(s.Cron)
		if err != nil {
			return func(time.Time) (time.Time, bool) { return time.Time{}, false }
		}
		at = func(after time.Time) time.Time { return nextCron(sched, loc, after) }
	case s.Every > 0:
		at = func(after time.Time) time.Time {
			next := s.From.Add(s.Every)
			if !next.After(after) {
				since := after.Sub(s.From)
				next = after.Add(s.Every - since%s.Every)
			}
			return next
		}
	}
	return func(after time.Time) (time.Time, bool) {
		next := at(after)
		if next.IsZero() || !next.After(after) || !s.Until.IsZero() && next.After(s.Until) || next.Sub(after) > maxAhead {
			return time.Time{}, false
		}
		return next.UTC(), true
	}
}

// everyHour are the bits of all hours in a cron.SpecSchedule.
const everyHour = 1<<24 - 1

// nextCron is the first time of a cron line after a moment. A line that fires in every hour follows the time that passes.
// Any other follows the clock on the wall: a time that daylight saving skips is fired when the clock has jumped over it,
// and one that comes twice is fired the first time.
func nextCron(sched cron.Schedule, loc *time.Location, after time.Time) time.Time {
	spec, ok := sched.(*cron.SpecSchedule)
	if !ok || spec.Hour&everyHour == everyHour {
		return sched.Next(after.In(loc))
	}
	naive := *spec
	naive.Location = time.UTC
	w := wall(after.In(loc)).Add(-3 * time.Hour) // before any time that a clock which was set back shows again
	for {
		if w = naive.Next(w); w.IsZero() {
			return time.Time{}
		}
		if at := onTheWall(w, loc); at.After(after) {
			return at
		}
	}
}

// onTheWall is the first moment at which a clock in loc shows w, or at which it has jumped over it.
func onTheWall(w time.Time, loc *time.Location) time.Time {
	at := time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), 0, loc)
	// A time that is not there becomes one before the jump or behind it, and one that comes twice either of the two.
	if shown := wall(at); shown.Before(w) {
		at = at.Add(w.Sub(shown))
	}
	for _, back := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour} {
		if e := at.Add(-back).In(loc); wall(e).Equal(w) {
			return e
		}
	}
	return at
}

// wall is what a clock shows, as if it were in UTC.
func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
