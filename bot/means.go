package bot

import (
	"slices"
	"strings"

	"drawbridge/bridge"
	"drawbridge/formatting"
	"drawbridge/internal/store"
	"drawbridge/policy"
	"drawbridge/runner"
)

// agent is a chat's runtime as far as its host tells: what of a mode it is held to, and who reviews.
type agent struct {
	name string
	runner.Capability
	reviewer string // the host's model that reviews; empty if it has none
}

// agent returns the chat's runtime. One that is not known is held to the table.
func (b *Bot) agent(t *store.Txn, c bridge.Chat) (agent, error) {
	hello, _, err := b.cfg.Chats.Hello(t, c.Host)
	return agent{name: c.Runtime, Capability: hello.Runtimes[c.Runtime], reviewer: hello.Reviewer}, err
}

// effective is the mode that the runtime really works under, and why if it is not the one that is asked for.
func (a agent) effective(m policy.Mode) (policy.Mode, string) {
	eff, known := a.Modes[m]
	if !known {
		return m, ""
	}
	if eff = eff.AtMost(m); eff == m {
		return m, ""
	}
	return eff, formatting.Inline(a.Why[string(m)], 300)
}

// workable are the categories in the order in which people are told of them, with what doing it and what it is called.
func workable() []struct {
	category policy.Category
	does, is string
} {
	return []struct {
		category policy.Category
		does, is string
	}{
		{policy.Read, "reads in the project", "reading in the project"},
		{policy.Write, "writes in the project", "writing in the project"},
		{policy.Terminal, "runs commands", "commands"},
		{policy.Delete, "deletes in the project", "deleting in the project"},
		{policy.Network, "uses the network", "the network"},
		{policy.Fetch, "fetches pages", "fetching pages"},
		{policy.ReadOutside, "reads elsewhere", "reading elsewhere"},
		{policy.Protected, "changes protected files and files elsewhere", "changing protected files and files elsewhere"},
		{policy.System, "changes the system", "changing the system"},
		{policy.Secret, "touches secrets", "secrets"},
		{policy.Credential, "uses credentials", "credentials"},
		{policy.Payment, "spends money", "payments"},
		{policy.Publish, "publishes", "publishing"},
		{policy.Unknown, "does what is not known", "what is not known"},
	}
}

// cells sorts what the runtime can do by what becomes of it in a mode: what it does unasked, what a reviewer decides, what a
// person does. What is done unasked although the mode would not have it so is in none of them: unheld says it.
func (a agent) cells(m policy.Mode) (unasked, judged, asked []string) {
	for _, w := range workable() {
		v, reached := a.Cell(m, policy.Default, w.category)
		loose := policy.Decide(m, policy.Default, w.category) != policy.Allow
		switch {
		case !reached, v == policy.Allow && loose, v == policy.Deny:
		case v == policy.Allow:
			unasked = append(unasked, w.does)
		case v == policy.Review:
			judged = append(judged, w.is)
		default:
			asked = append(asked, w.is)
		}
	}
	return unasked, judged, asked
}

// means says in one sentence what a mode lets the runtime do without asking. It is made from the table and the runtime's
// differences, which the suite holds against what the runtime was seen to do.
func (a agent) means(m policy.Mode) string {
	eff, why := a.effective(m)
	if eff != m {
		s := "works as " + string(eff) + " here"
		if why != "" {
			s += ": " + why
		}
		return s
	}
	unasked, judged, asked := a.cells(m)
	if m == policy.FullAccess {
		return "does everything on this machine without asking, apart from " + listed(without(asked, "what is not known"))
	}
	s := strings.Replace(listed(unasked), "reads in the project and writes in the project", "reads and writes in the project", 1) + " unasked"
	switch {
	case len(judged) == 0:
		return s + "; asks about everything else"
	case a.Reviewer != "" && a.reviewer != "":
		return s + "; " + formatting.Inline(a.Reviewer, 60) + ", and where it gives no verdict the model " + formatting.Inline(a.reviewer, 60) +
			", decides about " + listed(judged) + " in your place; everything else is asked"
	case a.Reviewer != "":
		return s + "; " + formatting.Inline(a.Reviewer, 60) + " decides about " + listed(judged) + " in your place; everything else is asked"
	case a.reviewer != "":
		return s + "; the reviewer, the model " + formatting.Inline(a.reviewer, 60) + ", decides about " + listed(judged) +
			" in your place; what it does not allow is asked, and so is everything else"
	}
	return s + "; this host has no reviewer, so you are asked about " + listed(judged) + ", and about everything else"
}

// fullMeans is what a person confirms with full-access.
func (a agent) fullMeans() string {
	unasked, _, asked := a.cells(policy.FullAccess)
	who := "The agent"
	if a.name != "" {
		who = "With " + formatting.Inline(a.name, 60) + ", the agent"
	}
	if eff, _ := a.effective(policy.FullAccess); eff != policy.FullAccess {
		return who + " then " + a.means(policy.FullAccess) + "."
	}
	return who + " then " + listed(without(unasked, "reads in the project", "writes in the project")) + " on this machine without asking. It still asks about " +
		listed(without(asked, "what is not known")) + ", as far as they can be recognised."
}

// notHeld writes what the runtime does unasked, or has decided otherwise, although the mode would not have it so, and what
// it cannot do although the mode would let it. Without modes it is of all of them, each named.
func (a agent) notHeld(m *formatting.Builder, modes ...policy.Mode) {
	for _, part := range []struct {
		title string
		of    []runner.Difference
	}{{textLooser, a.Looser}, {textStricter, a.Stricter}} {
		var told []string
		in := map[string][]string{}
		for _, d := range part.of {
			places := slices.Clone(d.Modes)
			if len(modes) > 0 {
				places = slices.DeleteFunc(places, func(m policy.Mode) bool { return !slices.Contains(modes, m) })
			}
			if len(places) == 0 && (!d.Plan || len(modes) > 0) {
				continue
			}
			if !slices.Contains(told, d.What) {
				told = append(told, d.What)
			}
			for _, p := range places {
				if !slices.Contains(in[d.What], string(p)) {
					in[d.What] = append(in[d.What], string(p))
				}
			}
			if d.Plan && len(modes) == 0 && !slices.Contains(in[d.What], "plan") {
				in[d.What] = append(in[d.What], "plan")
			}
		}
		if len(told) == 0 || m.Len() > maxList {
			continue
		}
		m.Text("\n\n" + part.title + formatting.Inline(a.name, 60) + ":")
		for _, what := range told {
			line := "\n• " + formatting.Inline(what, 300)
			if len(modes) != 1 {
				line += " (" + strings.Join(in[what], ", ") + ")"
			}
			if m.Len()+formatting.Len(line) > maxList {
				m.Text("\n• …")
				break
			}
			m.Text(line)
		}
	}
}

func without(list []string, leave ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(leave, s) })
}

// listed is a list as people say it.
func listed(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	if len(words) == 0 {
		return "nothing"
	}
	return words[0]
}
