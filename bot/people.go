package bot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"drawbridge/approvals"
	"drawbridge/internal/store"
)

// PeopleConfig lists who may do what, by Telegram user id. What the configuration lists wins over what was paired.
type PeopleConfig struct {
	DB                         store.DB
	Owners, Operators, Viewers []int64
}

// People knows who may do what. Nobody who is not listed or paired can do anything.
type People struct{ cfg PeopleConfig }

// NewPeople returns the people of the configuration and of the store.
func NewPeople(c PeopleConfig) *People { return &People{cfg: c} }

// roster is who was paired, under rosterKey.
type roster struct {
	V     int                       `json:"v"`
	Roles map[string]approvals.Role `json:"roles"` // by user id
}

// pairing is the code that makes the first owner, under pairingKey: only a digest of it, and how often somebody tried.
type pairing struct {
	V      int    `json:"v"`
	Digest string `json:"digest"`
	Tries  int    `json:"tries"`
}

// enabledGroup is a group that an owner enabled, under groupKey.
type enabledGroup struct {
	V  int       `json:"v"`
	By int64     `json:"by"`
	At time.Time `json:"at"`
}

const (
	rosterKey  = "g:people"
	pairingKey = "g:pairing"
	// maxTries is how many wrong codes end a pairing: a code has 40 bits, so guessing five times comes to nothing.
	maxTries = 5
)

func groupKey(id int64) string  { return "g:group:" + strconv.FormatInt(id, 10) }
func politeKey(id int64) string { return "g:polite:" + strconv.FormatInt(id, 10) }

// Role is what a person may do; empty for nothing.
func (p *People) Role(t *store.Txn, id int64) (approvals.Role, error) {
	if id <= 0 {
		return "", nil
	}
	for role, ids := range map[approvals.Role][]int64{
		approvals.Owner: p.cfg.Owners, approvals.Operator: p.cfg.Operators, approvals.Viewer: p.cfg.Viewers,
	} {
		if slices.Contains(ids, id) {
			return role, nil
		}
	}
	r, _, err := store.Get[roster](t, rosterKey)
	if err != nil {
		return "", fmt.Errorf("bot: read the people: %w", err)
	}
	return r.Roles[strconv.FormatInt(id, 10)], nil
}

// hasOwner reports whether anybody is an owner.
func (p *People) hasOwner(t *store.Txn) (bool, error) {
	if len(p.cfg.Owners) > 0 {
		return true, nil
	}
	r, _, err := store.Get[roster](t, rosterKey)
	if err != nil {
		return false, err
	}
	for _, role := range r.Roles {
		if role == approvals.Owner {
			return true, nil
		}
	}
	return false, nil
}

// owners lists the owners.
func (p *People) owners(t *store.Txn) ([]int64, error) {
	out := slices.Clone(p.cfg.Owners)
	r, _, err := store.Get[roster](t, rosterKey)
	if err != nil {
		return nil, fmt.Errorf("bot: read the people: %w", err)
	}
	for id, role := range r.Roles {
		n, err := strconv.ParseInt(id, 10, 64)
		if err == nil && role == approvals.Owner && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Invite makes a code that pairs the first owner, if there is none yet; an earlier code ends. The caller shows it on the
// console of the machine, and nowhere else. It is empty if there is an owner.
func (p *People) Invite(ctx context.Context) (code string, err error) {
	err = store.Update(ctx, p.cfg.DB, func(t *store.Txn) error {
		code = ""
		owned, err := p.hasOwner(t)
		if err != nil || owned {
			return err
		}
		code = rand.Text()[:8]
		if _, _, err := store.Get[pairing](t, pairingKey); err != nil {
			return err
		}
		return store.Put(t, pairingKey, pairing{V: Version, Digest: codeDigest(code)})
	})
	if err != nil {
		return "", fmt.Errorf("bot: make a pairing code: %w", err)
	}
	return code, nil
}

// pair makes a person the first owner if code is the one on the console. A wrong one counts, and maxTries of them end
// the pairing until the program makes another code. wrong counts the wrong ones, if this is one of them.
func (p *People) pair(t *store.Txn, id int64, code string) (paired bool, wrong int, err error) {
	owned, err := p.hasOwner(t)
	if err != nil || owned || id <= 0 {
		return false, 0, err
	}
	w, ok, err := store.Get[pairing](t, pairingKey)
	if err != nil || !ok || w.Tries >= maxTries {
		return false, 0, err
	}
	if subtle.ConstantTimeCompare([]byte(codeDigest(code)), []byte(w.Digest)) != 1 {
		w.Tries++
		return false, w.Tries, store.Put(t, pairingKey, w)
	}
	r, _, err := store.Get[roster](t, rosterKey)
	if err != nil {
		return false, 0, err
	}
	if r.Roles == nil {
		r.Roles = map[string]approvals.Role{}
	}
	r.V, r.Roles[strconv.FormatInt(id, 10)] = Version, approvals.Owner
	t.Delete(pairingKey)
	return true, 0, store.Put(t, rosterKey, r)
}

func codeDigest(code string) string {
	sum := sha256.Sum256([]byte("drawbridge pairing " + strings.ToUpper(strings.TrimSpace(code))))
	return hex.EncodeToString(sum[:])
}

// enabled reports whether the bot works in a chat: always in private, in a group once an owner said so.
func (p *People) enabled(t *store.Txn, chat ChatRef) (bool, error) {
	if chat.Private() {
		return true, nil
	}
	_, ok, err := store.Get[enabledGroup](t, groupKey(chat.ID))
	return ok, err
}

func (p *People) enable(t *store.Txn, chat ChatRef, by int64) error {
	now, err := t.Now()
	if err != nil {
		return err
	}
	return store.Put(t, groupKey(chat.ID), enabledGroup{V: Version, By: by, At: now})
}

func (p *People) disable(t *store.Txn, chat ChatRef) { t.Delete(groupKey(chat.ID)) }

// mayDecline reports whether a stranger may be answered in private now: at most once an hour.
func (p *People) mayDecline(t *store.Txn, id int64) (bool, error) {
	now, err := t.Now()
	if err != nil {
		return false, err
	}
	last, ok, err := store.Get[time.Time](t, politeKey(id))
	if err != nil || (ok && now.Sub(last) < time.Hour) {
		return false, err
	}
	t.Add(meaningsIndex, politeKey(id), store.Micros(now)) // forgotten with old buttons
	return true, store.Put(t, politeKey(id), now)
}

// strangerWords is what somebody is told who may do nothing: whom to ask, and for what.
func strangerWords(id int64, owned bool) string {
	if !owned {
		return textUnowned
	}
	return textStranger + strconv.FormatInt(id, 10) + "."
}

// wrongWords is the answer to the nth wrong code.
func wrongWords(n int) string {
	if n >= maxTries {
		return textLastCode
	}
	return textWrongCode
}
