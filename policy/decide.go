package policy

import "slices"

// row is one line of the table: the verdict of each column.
type row struct {
	read, secret, readOutside, write, protected, del, terminal, fetch, network, human, question, unknown Verdict
}

// The table, as it stands in the design. Protected and System share a column; so do Credential, Publish and Payment.
// From one mode to the next no cell becomes stricter: there is no exception to that rule.
func planRow() row {
	return row{Allow, Deny, Ask, Deny, Deny, Deny, Deny, Ask, Deny, Deny, Ask, Deny}
}

func modeRow(m Mode) row {
	switch m {
	case AutoAcceptEdits:
		return row{Allow, Ask, Ask, Allow, Ask, Ask, Ask, Ask, Ask, Ask, Ask, Ask}
	case Auto:
		return row{Allow, Ask, Review, Allow, Ask, Ask, Review, Review, Review, Ask, Ask, Ask}
	case FullAccess:
		return row{Allow, Ask, Allow, Allow, Allow, Allow, Allow, Allow, Allow, Ask, Ask, Ask}
	case ApprovalRequired:
	}
	return row{Allow, Ask, Ask, Ask, Ask, Ask, Ask, Ask, Ask, Ask, Ask, Ask}
}

func (r row) of(c Category) Verdict {
	switch c {
	case Read:
		return r.read
	case Secret:
		return r.secret
	case ReadOutside:
		return r.readOutside
	case Write:
		return r.write
	case Protected, System:
		return r.protected
	case Delete:
		return r.del
	case Terminal:
		return r.terminal
	case Fetch:
		return r.fetch
	case Network:
		return r.network
	case Credential, Publish, Payment:
		return r.human
	case Question:
		return r.question
	case Unknown:
	}
	return r.unknown
}

// Decide says what the table says of an action of all these categories: the strictest of their verdicts. No category
// counts as Unknown, and so does one that is none of the constants. A mode that is not a mode counts as
// ApprovalRequired and an interaction that is none as Plan, and neither of the two ever yields Allow, not even for a
// read: whoever holds such a value has lost track of what the chat chose.
func Decide(m Mode, i Interaction, c ...Category) Verdict {
	r := modeRow(m)
	if i != Default {
		r = planRow()
	}
	if len(c) == 0 {
		c = []Category{Unknown}
	}
	v := Allow
	if !m.Valid() || (i != Default && i != Plan) {
		v = Ask
	}
	for _, one := range c {
		v = stricter(v, r.of(one))
	}
	return v
}

// HumanOnly reports whether any of the categories is one that only a person may decide, in every mode: no reviewer, no
// grant and no rule.
func HumanOnly(c ...Category) bool {
	return slices.ContainsFunc(c, func(one Category) bool {
		return one == Credential || one == Publish || one == Payment || one == Question
	})
}

func stricter(a, b Verdict) Verdict {
	order := []Verdict{Allow, Review, Ask, Deny}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}
