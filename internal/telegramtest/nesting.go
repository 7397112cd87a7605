package telegramtest

import "slices"

// repair sorts entities and cuts what Telegram would cut: of two links, codes or quotes that meet, the later one goes;
// what crosses the border of a quote goes; styles are split at the borders of everything else and where another style
// begins, and vanish within code. What Telegram knows stays as it is.
func repair(entities []Entity) []Entity {
	entities = slices.Clone(entities)
	sortEntities(entities)
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
	var merged []Entity
	for _, kind := range []string{"bold", "italic", "underline", "strikethrough", "spoiler"} {
		merged = append(merged, union(styles, kind)...)
	}
	out := slices.Concat(quotes, rest, split(merged, quotes, rest))
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

// split cuts styles at every border of the other entities and wherever a style begins, so that none crosses another
// entity, and drops the pieces that lie within code.
func split(styles, quotes, rest []Entity) []Entity {
	var borders []int
	for _, e := range slices.Concat(quotes, rest) {
		borders = append(borders, e.Offset, e.end())
	}
	for _, e := range styles {
		borders = append(borders, e.Offset)
	}
	slices.Sort(borders)
	var out []Entity
	for _, whole := range styles {
		begin := whole.Offset
		for _, b := range append(slices.Clone(borders), whole.end()) {
			if b <= begin || b > whole.end() {
				continue
			}
			part := Entity{Type: whole.Type, Offset: begin, Length: b - begin}
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
