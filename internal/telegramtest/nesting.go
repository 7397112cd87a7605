package telegramtest

import "slices"

// nested reports whether the sorted entities stand within or beside each other as Telegram allows it: no crossing,
// nothing within code, code only within quotes, no kind of entity within its own kind.
func nested(entities []Entity) bool {
	var open []Entity
	for _, e := range entities {
		for len(open) > 0 && e.Offset >= open[len(open)-1].end() {
			open = open[:len(open)-1]
		}
		for i, outer := range open {
			switch {
			case i == len(open)-1 && e.end() > outer.end(),
				outer.kind() == pre,
				e.kind() == pre && outer.kind() != quote,
				e.kind() == outer.kind() && (e.kind() != style || e.Type == outer.Type):
				return false
			}
		}
		open = append(open, e)
	}
	return true
}

// repair sorts entities and cuts what Telegram would cut: of two links, codes or quotes that meet, the later one goes;
// what crosses the border of a quote goes; styles are split at the borders of everything else and vanish within code.
func repair(entities []Entity) []Entity {
	entities = slices.Clone(entities)
	sortEntities(entities)
	if nested(entities) {
		return entities
	}
	var styles, quotes, rest []Entity
	for _, e := range entities {
		switch e.kind() {
		case style:
			styles = append(styles, e)
		case quote:
			quotes = append(quotes, e)
		default:
			rest = append(rest, e)
		}
	}
	rest, quotes = disjoint(rest), disjoint(quotes)
	rest = slices.DeleteFunc(rest, func(e Entity) bool {
		return slices.ContainsFunc(quotes, func(q Entity) bool {
			apart := e.end() <= q.Offset || e.Offset >= q.end()
			within := e.Offset >= q.Offset && e.end() <= q.end()
			return !apart && !within
		})
	})
	out := slices.Concat(quotes, rest)
	for _, kind := range []string{"bold", "italic", "underline", "strikethrough", "spoiler"} {
		out = append(out, split(union(styles, kind), quotes, rest, styles)...)
	}
	sortEntities(out)
	return out
}

// disjoint keeps those of the sorted entities that begin after the one kept before has ended.
func disjoint(entities []Entity) []Entity {
	var out []Entity
	for _, e := range entities {
		if len(out) == 0 || e.Offset >= out[len(out)-1].end() {
			out = append(out, e)
		}
	}
	return out
}

// union merges the entities of one style that touch.
func union(styles []Entity, kind string) []Entity {
	var out []Entity
	for _, e := range styles {
		if e.Type != kind {
			continue
		}
		if n := len(out); n > 0 && e.Offset <= out[n-1].end() {
			out[n-1].Length = max(out[n-1].end(), e.end()) - out[n-1].Offset
			continue
		}
		out = append(out, e)
	}
	return out
}

// split cuts the pieces of one style at every border of the other entities, so that none crosses another, and drops
// those that lie within code.
func split(pieces, quotes, rest, styles []Entity) []Entity {
	var borders []int
	for _, e := range slices.Concat(quotes, rest, styles) {
		borders = append(borders, e.Offset, e.end())
	}
	slices.Sort(borders)
	borders = slices.Compact(borders)
	var out []Entity
	for _, p := range pieces {
		begin := p.Offset
		for _, b := range append(slices.Clone(borders), p.end()) {
			if b <= begin || b > p.end() {
				continue
			}
			part := Entity{Type: p.Type, Offset: begin, Length: b - begin}
			begin = b
			if !slices.ContainsFunc(rest, func(e Entity) bool {
				return e.kind() == pre && part.Offset < e.end() && e.Offset < part.end()
			}) {
				out = append(out, part)
			}
		}
	}
	return out
}
