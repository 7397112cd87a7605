package task

import (
	"errors"
	"testing"
	"time"
)

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

// TestTimes holds what a spec means against times that were worked out by hand.
func TestTimes(t *testing.T) {
	t.Parallel()
	const berlin, newYork, kolkata, lordHowe = "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"
	for name, c := range map[string]struct {
		line, zone, from string
		want             []string
	}{
		"every weekday at nine":                    {"0 9 * * 1-5", berlin, "2026-12-04T12:00:00Z", []string{"2026-12-07T08:00:00Z", "2026-12-08T08:00:00Z"}},
		"half hours count":                         {"0 9 * * *", kolkata, "2026-12-01T00:00:00Z", []string{"2026-12-01T03:30:00Z", "2026-12-02T03:30:00Z"}},
		"in spring, in the hour that is not there": {"30 2 * * *", berlin, "2026-03-28T12:00:00Z", []string{"2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"}},
		"the same west of Greenwich":               {"30 2 * * *", newYork, "2026-03-07T12:00:00Z", []string{"2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z"}},
		"in autumn, in the hour that comes twice":  {"30 2 * * *", berlin, "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"not again in the second of the two":       {"30 2 * * *", berlin, "2026-10-25T00:45:00Z", []string{"2026-10-26T01:30:00Z"}},
		"nor once it is over":                      {"30 2 * * *", berlin, "2026-10-25T01:15:00Z", []string{"2026-10-26T01:30:00Z"}},
		"each hour of autumn":                      {"0 * * * *", berlin, "2026-10-24T23:30:00Z", []string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		"each hour of spring":                      {"0 * * * *", berlin, "2026-03-29T00:30:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		"an island that changes by half an hour":   {"45 1 * * *", lordHowe, "2026-04-03T20:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		"a leap day":                               {"0 0 29 2 *", "UTC", "2026-12-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		"a word":                                   {"@daily", berlin, "2026-12-01T00:00:00Z", []string{"2026-12-01T23:00:00Z"}},
	} {
		s, err := ParseCron(c.line, c.zone, at(c.from))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		loc, err := Zone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range s.Times(loc, at(c.from), len(c.want)) {
			if !got.Equal(at(c.want[i])) {
				t.Errorf("%s: time %d is %s, want %s", name, i, got.Format(time.RFC3339), c.want[i])
			}
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	now := at("2026-12-01T10:00:00Z")
	cron := func(line string) func() (Spec, error) {
		return func() (Spec, error) { return ParseCron(line, "Europe/Berlin", now) }
	}
	for name, c := range map[string]struct {
		parse func() (Spec, error)
		want  error
		next  int // how many times are said back
	}{
		"words":                      {cron("every morning"), ErrSpec, 0},
		"nothing":                    {cron(""), ErrSpec, 0},
		"four fields":                {cron("0 9 * *"), ErrSpec, 0},
		"hour 25":                    {cron("0 25 * * *"), ErrSpec, 0},
		"a zone of its own":          {cron("CRON_TZ=UTC 0 9 * * *"), ErrSpec, 0},
		"each second":                {cron("* * * * * *"), ErrTooOften, 3},
		"each ten seconds":           {cron("*/10 * * * * *"), ErrTooOften, 3},
		"twice a minute":             {cron("0,30 * * * * *"), ErrTooOften, 3},
		"in a word":                  {cron("@every 10s"), ErrTooOften, 3},
		"the thirtieth of February":  {cron("0 0 30 2 *"), ErrNever, 0},
		"an interval of seconds":     {func() (Spec, error) { return ParseEvery("30s", "", "", now) }, ErrTooOften, 3},
		"no interval":                {func() (Spec, error) { return ParseEvery("0m", "", "", now) }, ErrSpec, 0},
		"less than none":             {func() (Spec, error) { return ParseIn("-5m", now) }, ErrSpec, 0},
		"a date that has passed":     {func() (Spec, error) { return ParseAt("2026-11-30 18:00", "", now) }, ErrPast, 0},
		"over before it begins":      {func() (Spec, error) { return ParseEvery("2h", "11:00", "UTC", now) }, ErrNever, 0},
		"no such zone":               {func() (Spec, error) { return ParseAt("18:00", "Europe/Atlantis", now) }, ErrZone, 0},
		"the machine's zone":         {func() (Spec, error) { return ParseAt("18:00", "Local", now) }, ErrZone, 0},
		"a time that is none":        {func() (Spec, error) { return ParseAt("25:00", "", now) }, ErrSpec, 0},
		"days that are not a number": {func() (Spec, error) { return ParseIn("xd", now) }, ErrSpec, 0},
		"further than anybody plans": {func() (Spec, error) { return ParseIn("3000d", now) }, ErrNever, 0},
	} {
		_, err := c.parse()
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		var spec *SpecError
		if errors.As(err, &spec) && len(spec.Next) != c.next {
			t.Errorf("%s: says back %v", name, spec.Next)
		}
	}
	for _, line := range []string{"* * * * *", "30 0 9 * * *", "@every 1m"} {
		if _, err := ParseCron(line, "", now); err != nil {
			t.Errorf("%s is refused: %v", line, err)
		}
	}
}

func TestOnceAndEvery(t *testing.T) {
	t.Parallel()
	now := at("2026-12-01T10:07:30Z")
	berlin, err := Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		parse func() (Spec, error)
		want  []string
	}{
		"later today":          {func() (Spec, error) { return ParseAt("18:30", "Europe/Berlin", now) }, []string{"2026-12-01T17:30:00Z"}},
		"tomorrow":             {func() (Spec, error) { return ParseAt("09:00", "Europe/Berlin", now) }, []string{"2026-12-02T08:00:00Z"}},
		"a date":               {func() (Spec, error) { return ParseAt("2026-12-24 18:00", "Europe/Berlin", now) }, []string{"2026-12-24T17:00:00Z"}},
		"in a while":           {func() (Spec, error) { return ParseIn("20m", now) }, []string{"2026-12-01T10:27:30Z"}},
		"in days":              {func() (Spec, error) { return ParseIn("1d2h", now) }, []string{"2026-12-02T12:07:30Z"}},
		"every, until":         {func() (Spec, error) { return ParseEvery("2h", "15:30", "Europe/Berlin", now) }, []string{"2026-12-01T12:07:30Z", "2026-12-01T14:07:30Z"}},
		"every, without a end": {func() (Spec, error) { return ParseEvery("90m", "", "", now) }, []string{"2026-12-01T11:37:30Z", "2026-12-01T13:07:30Z", "2026-12-01T14:37:30Z"}},
	} {
		s, err := c.parse()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := s.Times(berlin, now, 3)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if !got[i].Equal(at(c.want[i])) {
				t.Errorf("%s: time %d is %s, want %s", name, i, got[i].Format(time.RFC3339), c.want[i])
			}
		}
	}
}
