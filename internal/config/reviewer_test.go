package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const reviewerFile = `
[reviewer]
base_url = "https://review.example.org/v1/"
model = "small-1"
key_env = "REVIEW_KEY"
timeout = "45s"
`

func TestReviewer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		file string
		env  []string
		want *Reviewer
	}{
		"none": {},
		"file": {file: reviewerFile, env: []string{"REVIEW_KEY=k-of-env"}, want: &Reviewer{
			BaseURL: "https://review.example.org/v1", Model: "small-1", Key: NewSecret("k-of-env"), Timeout: 45 * time.Second,
		}},
		"key in the file, default timeout": {file: "[reviewer]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\nkey = \"k\"\n", want: &Reviewer{
			BaseURL: "http://127.0.0.1:9/v1", Model: "m", Key: NewSecret("k"), Timeout: 20 * time.Second,
		}},
		"environment": {env: []string{
			"DRAWBRIDGE_REVIEWER_URL=http://127.0.0.1:9/v1", "DRAWBRIDGE_REVIEWER_MODEL=m", "DRAWBRIDGE_REVIEWER_KEY=k", "DRAWBRIDGE_REVIEWER_TIMEOUT=2s",
		}, want: &Reviewer{BaseURL: "http://127.0.0.1:9/v1", Model: "m", Key: NewSecret("k"), Timeout: 2 * time.Second}},
		// The file's key was given for the file's address.
		"environment replaces the whole table": {
			file: reviewerFile, env: []string{"REVIEW_KEY=k", "DRAWBRIDGE_REVIEWER_URL=http://127.0.0.1:9/v1", "DRAWBRIDGE_REVIEWER_MODEL=m"},
			want: &Reviewer{BaseURL: "http://127.0.0.1:9/v1", Model: "m", Timeout: 20 * time.Second},
		},
		"a faster pace": {file: "pace = 10\n" + reviewerFile, env: []string{"REVIEW_KEY=k"}, want: &Reviewer{
			BaseURL: "https://review.example.org/v1", Model: "small-1", Key: NewSecret("k"), Timeout: 4500 * time.Millisecond,
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, err := load(t, tt.file, tt.env...)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(c.Reviewer, tt.want) {
				t.Errorf("got %+v, want %+v", c.Reviewer, tt.want)
			}
			if w := c.Warnings(); len(w) != 0 {
				t.Errorf("warnings: %q", w)
			}
			shown := 0
			for _, v := range c.Values() {
				if strings.HasPrefix(v.Key, "reviewer ") {
					shown++
				}
				if strings.Contains(v.Text, "k-of-env") || v.Key == "reviewer key" && v.Text != Mask {
					t.Errorf("%s is shown as %q", v.Key, v.Text)
				}
			}
			if (shown > 0) != (tt.want != nil) {
				t.Errorf("%d values are shown", shown)
			}
		})
	}
}

func TestReviewerMistakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		env  []string
		want string
	}{
		"no model":          {file: "[reviewer]\nbase_url = \"http://h\"\n", want: "config: FILE: reviewer, model: not set; what the endpoint"},
		"no address":        {env: []string{"DRAWBRIDGE_REVIEWER_MODEL=m"}, want: "config: the DRAWBRIDGE_REVIEWER_ variables: reviewer, base_url: not set; http://"},
		"password in it":    {env: []string{"DRAWBRIDGE_REVIEWER_MODEL=m", "DRAWBRIDGE_REVIEWER_URL=http://a:hunter2@h"}, want: "config: DRAWBRIDGE_REVIEWER_URL: reviewer, base_url = ***: http://"},
		"too long":          {file: strings.Replace(reviewerFile, "45s", "3m", 1), env: []string{"REVIEW_KEY=k"}, want: `config: FILE: reviewer, timeout = "3m": a duration from 1s to 2m, such as 20s`},
		"missing key":       {file: reviewerFile, want: `config: FILE: reviewer, key_env = "REVIEW_KEY": the name of an environment variable that is set`},
		"key with a blank":  {env: []string{"DRAWBRIDGE_REVIEWER_MODEL=m", "DRAWBRIDGE_REVIEWER_URL=http://h", "DRAWBRIDGE_REVIEWER_KEY=hunter2 x"}, want: "config: DRAWBRIDGE_REVIEWER_KEY: reviewer, key = ***: the endpoint's key"},
		"unknown key":       {file: reviewerFile + "tools = true\n", env: []string{"REVIEW_KEY=k"}, want: "config: FILE: reviewer, tools: unknown key; there are base_url, key, key_env, model, timeout"},
		"several":           {file: "[[reviewer]]\nmodel = \"m\"\n", want: "config: FILE: reviewer: one table, under the heading [reviewer]"},
		"not even a table":  {file: "reviewer = \"hunter2\"\n", want: "config: FILE: reviewer: one table, under the heading [reviewer]"},
		"a mode's loophole": {file: "[reviewer]\nbase_url = \"http://h\"\nmodel = \"m\"\nallow = \"all\"\n", want: "reviewer, allow: unknown key;"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, file, err := load(t, tt.file, tt.env...)
			if err == nil {
				t.Fatal("accepted")
			}
			got := strings.ReplaceAll(err.Error(), oneLine(cut(file)), "FILE")
			if !strings.Contains(got, tt.want) || strings.Contains(got, "hunter2") {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A gateway alone reviews nothing and gets no key for it.
func TestReviewersKeyIsTheHosts(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, reviewerFile, "REVIEW_KEY=k", "DRAWBRIDGE_TOKEN=1:a", "REDIS_URL=redis://127.0.0.1", "DRAWBRIDGE_PROJECTS=p=/srv/p",
		"DRAWBRIDGE_MODEL_URL=http://h", "DRAWBRIDGE_MODEL=m")
	if err != nil {
		t.Fatal(err)
	}
	for role, has := range map[Role]bool{RoleServe: true, RoleHost: true, RoleGateway: false} {
		part, err := c.For(role)
		if err != nil {
			t.Fatal(err)
		}
		if part.Reviewer.Key.Set() != has {
			t.Errorf("%s has the reviewer's key: %v", role, !has)
		}
	}
	if !c.Reviewer.Key.Set() {
		t.Error("For has changed the Config that it was called on")
	}
}
