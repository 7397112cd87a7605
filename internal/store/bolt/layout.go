package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"

	"go.etcd.io/bbolt"

	"drawbridge/internal/store"
)

var errDamaged = errors.New("damaged document")

// encodeDoc writes the length of the revision, the revision and the value.
func encodeDoc(rev store.Rev, value []byte) []byte {
	b := make([]byte, 0, binary.MaxVarintLen16+len(rev)+len(value))
	b = binary.AppendUvarint(b, uint64(len(rev)))
	b = append(b, rev...)
	return append(b, value...)
}

// decodeDoc copies, because bbolt's memory is gone after the transaction. The value of a document that exists is never nil.
func decodeDoc(b []byte) (store.Doc, error) {
	if b == nil {
		return store.Doc{}, nil
	}
	n, width := binary.Uvarint(b)
	if width <= 0 || n > uint64(len(b)-width) {
		return store.Doc{}, errDamaged
	}
	rest := b[width:]
	return store.Doc{Rev: store.Rev(rest[:n]), Value: append([]byte{}, rest[n:]...)}, nil
}

// indexPrefix starts every key of an index. The length in front keeps an index apart from one whose name it begins.
func indexPrefix(index string) []byte {
	b := make([]byte, 0, 2+len(index)+8+32)
	b = binary.BigEndian.AppendUint16(b, uint16(len(index)))
	return append(b, index...)
}

// appendScore flips the sign bit, so that bytewise order is the order of the numbers.
func appendScore(b []byte, score int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(score)^1<<63)
}

func parseScore(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

func add(scores, members *bbolt.Bucket, i store.Item) error {
	if err := scores.Put(append(appendScore(indexPrefix(i.Index), i.Score), i.Member...), []byte{}); err != nil {
		return err
	}
	return members.Put(append(indexPrefix(i.Index), i.Member...), appendScore(nil, i.Score))
}

func drop(scores, members *bbolt.Bucket, index, member string) error {
	key := append(indexPrefix(index), member...)
	at := members.Get(key)
	if at == nil {
		return nil
	}
	if err := scores.Delete(append(append(indexPrefix(index), at...), member...)); err != nil {
		return err
	}
	return members.Delete(key)
}

func scan(scores *bbolt.Bucket, index string, min, max int64, limit int) []store.Item {
	if len(index) > store.MaxName {
		return nil
	}
	var items []store.Item
	prefix := indexPrefix(index)
	c := scores.Cursor()
	for k, _ := c.Seek(appendScore(bytes.Clone(prefix), min)); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		rest := k[len(prefix):]
		score := parseScore(rest)
		if score > max || (limit > 0 && len(items) == limit) {
			break
		}
		items = append(items, store.Item{Index: index, Member: string(rest[8:]), Score: score})
	}
	return items
}
