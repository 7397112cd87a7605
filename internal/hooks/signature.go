package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The headers of a delivery.
const (
	TimestampHeader = "X-Drawbridge-Timestamp" // seconds since 1970, of now
	DeliveryHeader  = "X-Drawbridge-Delivery"  // names the delivery; the same name is the same delivery
	SignatureHeader = "X-Drawbridge-Signature" // "sha256=" and Sign in hexadecimal
)

const signaturePrefix = "sha256="

// Neither form has a dot, so that what is signed can be taken apart in one way only: with "a" before the dot and "b.c"
// behind it as good as "a.b" and "c", a delivery could come again under another name.
var (
	timestampForm = regexp.MustCompile(`^[1-9][0-9]{0,11}$`)
	deliveryForm  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
)

// delivery is what a signature vouches for besides the body.
type delivery struct {
	id string
	at time.Time
}

// Sign is the HMAC-SHA256 of timestamp, delivery and body, with dots between them. The name of the delivery is in it
// because whoever has seen one could otherwise send it again under another name, and start it again.
func Sign(secret, timestamp, delivery string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "." + delivery + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// verify says whether the headers sign the body with the secret of the hook called name. It does the same work for a name
// that does not exist and for headers that cannot be right.
func (h *Handler) verify(name string, header http.Header, body []byte) (Hook, delivery, bool) {
	k, known := h.hooks[name]
	if !known {
		k = h.nobody
	}
	timestamp, id := one(header, TimestampHeader), one(header, DeliveryHeader)
	given, decoded := signature(one(header, SignatureHeader))
	right := hmac.Equal(given[:], Sign(k.Secret, timestamp, id, body))
	if !known || !decoded || !right || !timestampForm.MatchString(timestamp) || !deliveryForm.MatchString(id) {
		return Hook{}, delivery{}, false
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	return k, delivery{id: id, at: time.Unix(seconds, 0)}, err == nil
}

// one is a header that stands once; empty otherwise, because a proxy could read another one of several.
func one(header http.Header, name string) string {
	if v := header.Values(name); len(v) == 1 {
		return v[0]
	}
	return ""
}

func signature(text string) (sum [sha256.Size]byte, ok bool) {
	digits, ok := strings.CutPrefix(text, signaturePrefix)
	if !ok || len(digits) != hex.EncodedLen(sha256.Size) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(digits))
	return sum, err == nil
}

// taskID names the task of a delivery: the same one for the same delivery to the same hook, and none that anything but a
// hook makes, whatever a sender calls its deliveries. It is lower-case, as people may type it.
func taskID(hook, id string) string {
	sum := sha256.Sum256([]byte(id))
	return "hook-" + hook + "-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10]))
}
