package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"drawbridge/internal/store"
	"drawbridge/runner"
)

const (
	// blobPiece is the size of one piece of a file on its way through the store.
	blobPiece = 512 << 10
	// MaxBlob is the size of the largest file that is passed on: what a bot may download from Telegram.
	MaxBlob = 20 << 20
	// blobKeep is how long a file waits for its host.
	blobKeep = time.Hour
)

// ErrTooLarge says that a file is larger than MaxBlob.
var ErrTooLarge = errors.New("bridge: file is too large")

const blobsIndex = "g:blobs" // the key of each piece, by when it was put

// PutBlob passes a file to a host, in pieces. It is forgotten after an hour.
func PutBlob(ctx context.Context, db store.DB, host, name string, r io.Reader) (Blob, error) {
	b := Blob{ID: newID("b."), Name: fileName(name)}
	buf := make([]byte, blobPiece)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if b.Size += n; b.Size > MaxBlob {
				return Blob{}, fmt.Errorf("bridge: pass %s on: %w", b.Name, ErrTooLarge)
			}
			key := blobKey(host, b.ID, b.Pieces)
			err := store.Update(ctx, db, func(t *store.Txn) error {
				now, err := t.Now()
				if err != nil {
					return err
				}
				t.PutBytes(key, buf[:n])
				t.Add(blobsIndex, key, store.Micros(now))
				return nil
			})
			if err != nil {
				return Blob{}, fmt.Errorf("bridge: pass %s on: %w", b.Name, err)
			}
			b.Pieces++
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return b, nil
		}
		if err != nil {
			return Blob{}, fmt.Errorf("bridge: read %s: %w", b.Name, err)
		}
	}
}

// PruneBlobs forgets the files whose hour is over.
func PruneBlobs(ctx context.Context, db store.DB) error {
	now, _, err := db.Read(ctx)
	if err != nil {
		return err
	}
	for {
		old, err := db.Range(ctx, blobsIndex, 0, store.Micros(now.Add(-blobKeep)), 200)
		if err != nil || len(old) == 0 {
			return err
		}
		b := store.Batch{Rev: store.NewRev()}
		for _, it := range old {
			b.Del = append(b.Del, it.Member)
			b.Drop = append(b.Drop, store.Item{Index: blobsIndex, Member: it.Member})
		}
		if err := db.Commit(ctx, b); err != nil {
			return err
		}
	}
}

// attachments writes an order's files into this host's own folder, where only this user can read them.
func (h *Host) attachments(ctx context.Context, o Order) ([]runner.File, error) {
	if len(o.Prompt.Files) == 0 {
		return nil, nil
	}
	dir := filepath.Join(h.cfg.Data, "attachments", fileName(o.Turn))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, errors.New("the attachments could not be stored on the host")
	}
	var files []runner.File
	for i, b := range o.Prompt.Files {
		path := filepath.Join(dir, fmt.Sprintf("%d-%s", i+1, fileName(b.Name)))
		if err := h.fetch(ctx, b, path); err != nil {
			return nil, fmt.Errorf("%s did not reach the host: %w", b.Name, err)
		}
		files = append(files, runner.File{Name: b.Name, Path: path})
	}
	return files, nil
}

func (h *Host) fetch(ctx context.Context, b Blob, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return errors.New("it could not be written")
	}
	defer f.Close() //nolint:errcheck // closed with its error below
	for n := range b.Pieces {
		_, docs, err := h.cfg.DB.Read(ctx, blobKey(h.cfg.Name, b.ID, n))
		if err != nil {
			return errors.New("the store could not be read")
		}
		if docs[0].Rev == "" {
			return errors.New("it waited for more than an hour; send it again")
		}
		if _, err := f.Write(docs[0].Value); err != nil {
			return errors.New("it could not be written")
		}
	}
	return f.Close()
}

// fileName keeps what is safe of a name that somebody else chose.
func fileName(name string) string {
	name = filepath.Base(strings.ReplaceAll(name, `\`, "/"))
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
	clean = strings.TrimLeft(clean, ".-")
	if clean == "" {
		return "file"
	}
	return tail(clean, 100)
}
