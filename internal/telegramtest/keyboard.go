package telegramtest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of inline keyboards. The total is what Telegram's servers accept in practice.
const (
	maxCallbackData = 64 // bytes
	maxCopyText     = 256
	maxButtons      = 100
)

type inlineKeyboard struct {
	Rows [][]button `json:"inline_keyboard"`
}

type button struct {
	Text              string    `json:"text"`
	URL               string    `json:"url,omitempty"`
	CallbackData      string    `json:"callback_data,omitempty"`
	WebApp            *webApp   `json:"web_app,omitempty"`
	CopyText          *copyText `json:"copy_text,omitempty"`
	Style             string    `json:"style,omitempty"`
	IconCustomEmojiID string    `json:"icon_custom_emoji_id,omitempty"`
	Disabled          *struct{} `json:"disabled,omitempty"`
}

type webApp struct {
	URL string `json:"url"`
}

type copyText struct {
	Text string `json:"text"`
}

// replyMarkup is what a reply_markup parameter says: an inline keyboard, or something for the person's own keyboard
// that is kept as it came.
type replyMarkup struct {
	inline *inlineKeyboard
	other  json.RawMessage
}

func (p params) replyMarkup(kind string) (replyMarkup, error) {
	raw := strings.TrimSpace(p.values["reply_markup"])
	if raw == "" || raw == "null" {
		return replyMarkup{}, nil
	}
	var fields map[string]json.RawMessage
	if !json.Valid([]byte(raw)) {
		return replyMarkup{}, badRequest("can't parse reply keyboard markup JSON object")
	}
	if json.Unmarshal([]byte(raw), &fields) != nil {
		return replyMarkup{}, badRequest("object expected as reply markup")
	}
	if fields["inline_keyboard"] == nil {
		for _, known := range []string{"keyboard", "remove_keyboard", "force_reply"} {
			if fields[known] != nil {
				return replyMarkup{other: json.RawMessage(raw)}, nil
			}
		}
		return replyMarkup{}, nil
	}
	var rows [][]json.RawMessage
	if json.Unmarshal(fields["inline_keyboard"], &rows) != nil {
		return replyMarkup{}, badRequest(`field "inline_keyboard" must be of type Array`)
	}
	keyboard := &inlineKeyboard{}
	count := 0
	for _, row := range rows {
		var buttons []button
		for _, one := range row {
			b, err := parseButton(one, kind)
			if err != nil {
				return replyMarkup{}, err
			}
			buttons = append(buttons, b)
			count++
		}
		if len(buttons) > 0 {
			keyboard.Rows = append(keyboard.Rows, buttons)
		}
	}
	if count > maxButtons {
		return replyMarkup{}, badRequest("reply markup is too long")
	}
	if count == 0 {
		return replyMarkup{}, nil
	}
	return replyMarkup{inline: keyboard}, nil
}

func parseButton(raw json.RawMessage, kind string) (button, error) {
	var b button
	if err := json.Unmarshal(raw, &b); err != nil {
		return b, badRequest("can't parse inline keyboard button: InlineKeyboardButton must be an Object")
	}
	if !utf8.ValidString(b.Text) {
		return b, badRequest("inline keyboard button text must be encoded in UTF-8")
	}
	if b.Text == "" {
		return b, badRequest(`can't parse inline keyboard button: Can't find field "text"`)
	}
	if b.Style != "" && !slices.Contains([]string{"danger", "success", "primary"}, b.Style) {
		return b, badRequest("can't parse inline keyboard button: invalid button style specified")
	}
	actions := 0
	for _, given := range []bool{b.URL != "", b.CallbackData != "", b.WebApp != nil, b.CopyText != nil, b.Disabled != nil} {
		if given {
			actions++
		}
	}
	switch {
	case actions == 0:
		return b, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
	case actions > 1:
		// The real server takes the first it knows; a client that sends two is mistaken all the same.
		return b, badRequest("can't parse inline keyboard button: exactly one of the optional fields must be used")
	case len(b.CallbackData) > maxCallbackData:
		return b, badRequest("BUTTON_DATA_INVALID")
	case b.URL != "":
		return b, checkURL("inline keyboard button URL", b.URL)
	case b.WebApp != nil:
		if kind != Private {
			return b, badRequest("BUTTON_TYPE_INVALID")
		}
		if !strings.HasPrefix(b.WebApp.URL, "https://") {
			return b, badRequest("inline keyboard button web app URL '%s' is invalid: Only HTTPS links are allowed", b.WebApp.URL)
		}
	case b.CopyText != nil:
		if n := utf8.RuneCountInString(b.CopyText.Text); n < 1 || n > maxCopyText {
			return b, badRequest("BUTTON_COPY_TEXT_INVALID")
		}
	}
	return b, nil
}

// checkURL accepts what can stand behind a link: http and https addresses with a plausible host, and tg: links.
func checkURL(what, link string) error {
	bad := func(why string) error { return badRequest("%s '%s' is invalid: %s", what, link, why) }
	if link == "" {
		return bad("URL host is empty")
	}
	full := link
	if !strings.Contains(full, "://") && !strings.HasPrefix(full, "tg:") && !strings.HasPrefix(full, "mailto:") && !strings.HasPrefix(full, "tel:") {
		full = "http://" + full
	}
	u, err := url.Parse(full)
	if err != nil {
		return bad("Wrong HTTP URL")
	}
	switch strings.ToLower(u.Scheme) {
	case "tg", "ton", "mailto", "tel":
		return nil
	case "http", "https":
	default:
		return bad("Unsupported URL protocol")
	}
	host := u.Hostname()
	if host == "" {
		return bad("URL host is empty")
	}
	if !strings.Contains(host, ".") && !strings.Contains(host, ":") {
		return bad("Wrong HTTP URL")
	}
	return nil
}
