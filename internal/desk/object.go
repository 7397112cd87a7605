package desk

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
)

// object is a JSON object in the order in which it was written: other people's settings must look afterwards as they did.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

func parseObject(text []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, ErrSettings
	}
	o := object{}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, ErrSettings
		}
		var m member
		if m.key = key; d.Decode(&m.value) != nil {
			return nil, ErrSettings
		}
		var small bytes.Buffer
		if json.Compact(&small, m.value) != nil {
			return nil, ErrSettings
		}
		m.value = small.Bytes()
		o = append(o, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, ErrSettings
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, ErrSettings
	}
	return o, nil
}

// value is that of a key; nil if there is none.
func (o object) value(key string) json.RawMessage {
	for _, m := range slices.Backward(o) { // of a key that is there twice, readers take the last
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// with is o with another value of a key, in its place or at the end.
func (o object) with(key string, value json.RawMessage) object {
	out := slices.Clone(o)
	for i, m := range slices.Backward(out) {
		if m.key == key {
			out[i].value = value
			return out
		}
	}
	return append(out, member{key, value})
}

func (o object) without(key string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return m.key == key })
}

func (o object) bytes() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := encode(m.key)
		if err != nil {
			panic("desk: object: " + err.Error()) // a text always has a form in JSON
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func array(list []json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(v)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// encode is json.Marshal that leaves <, > and & as they are: settings hold shell lines.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
