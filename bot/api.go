package bot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	tg "github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"
)

// DefaultURL is Telegram's own server.
const DefaultURL = "https://api.telegram.org"

const (
	// callTimeout bounds one call that carries no file. Telegram answers within a second; a connection that is silent for
	// longer than this is dead.
	callTimeout = 30 * time.Second
	// fileTimeout bounds one call that carries a file of up to 50 MB.
	fileTimeout = 3 * time.Minute
	// maxReply bounds what is read of an answer: a hundred updates of a few hundred KB are more than Telegram sends.
	maxReply = 64 << 20
	// maxDownload is Telegram's own limit for files that bots fetch.
	maxDownload = 20 << 20
)

// AllowedUpdates are the kinds of update that Drawbridge asks for. They are named at each request, because Telegram
// otherwise goes on with whatever the last program that used the token had named.
func AllowedUpdates() []string {
	return []string{
		models.AllowedUpdateMessage, models.AllowedUpdateEditedMessage, models.AllowedUpdateCallbackQuery,
		models.AllowedUpdateMyChatMember, models.AllowedUpdateStoppedMessageGeneration,
	}
}

// APIConfig says how Telegram is reached.
type APIConfig struct {
	Token string       // the bot's token; it never appears in an error or a log line
	URL   string       // DefaultURL if empty
	HTTP  *http.Client // its own connections if nil; whoever gives one bounds nothing in it: every call has its deadline
}

// API calls Telegram. Every error that it returns is an *Error, or a context's. It neither retries nor waits: that is
// for the poller, the outbox and the acker. It is safe for concurrent use.
type API struct {
	token  string
	url    string
	client *http.Client
	bot    *tg.Bot
}

// NewAPI returns an API. It calls nobody. Two of them share no connections, so that what must not wait (the answers to
// taps) can have its own.
func NewAPI(cfg APIConfig) (*API, error) {
	a := &API{token: cfg.Token, url: strings.TrimRight(cmp.Or(cfg.URL, DefaultURL), "/"), client: cfg.HTTP}
	if a.client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
		t.MaxIdleConnsPerHost = 16
		a.client = &http.Client{Transport: t}
	}
	b, err := tg.New(cfg.Token, tg.WithSkipGetMe(), tg.WithServerURL(a.url), tg.WithHTTPClient(time.Minute, doer{a.client}),
		// What it reports here are failures to close a pipe or a body after the call's outcome is known.
		tg.WithErrorsHandler(func(error) {}))
	if err != nil {
		return nil, fmt.Errorf("bot: telegram client: %s", a.mask(err.Error()))
	}
	a.bot = b
	return a, nil
}

// Close gives up idle connections.
func (a *API) Close() { a.client.CloseIdleConnections() }

// LogValue keeps the token out of a log that is given the whole API.
func (a *API) LogValue() slog.Value { return slog.StringValue(a.url) }

// String keeps the token out of a formatted API.
func (a *API) String() string { return a.url }

// ID is the bot's own user id, which is the part of the token before the colon.
func (a *API) ID() int64 { return a.bot.ID() }

// Bot gives the conversation the library's other methods. Their errors go through Classify, which also masks the token.
func (a *API) Bot() *tg.Bot { return a.bot }

func (a *API) mask(s string) string {
	if a.token == "" {
		return s
	}
	s = strings.ReplaceAll(s, a.token, "***")
	if _, secret, ok := strings.Cut(a.token, ":"); ok && secret != "" {
		s = strings.ReplaceAll(s, secret, "***")
	}
	return s
}

// captured is what a call really got back, for the case that the library can't decode it.
type captured struct{ body []byte }

type capturedKey struct{}

// doer sends requests whose body is known in full, so that net/http can repeat one whose idle connection turned out to
// be closed (the library's pipes can't be read twice), and keeps the answer.
type doer struct{ client *http.Client }

func (d doer) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("form: %w", err)
		}
		_ = r.Body.Close()
		r.ContentLength = int64(len(b))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
		r.Body, _ = r.GetBody()
	}
	resp, err := d.client.Do(r)
	if err != nil {
		return nil, err
	}
	c, _ := r.Context().Value(capturedKey{}).(*captured)
	if c == nil {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	if c.body, err = io.ReadAll(io.LimitReader(resp.Body, maxReply)); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(c.body))
	return resp, nil
}

// call is for what the library has no method for, or calls with a body that strict servers refuse.
func (a *API) call(ctx context.Context, timeout time.Duration, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("bot: %s: %w", method, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/bot"+a.token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return a.Classify(method, err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(r)
	if err != nil {
		return a.Classify(method, err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		OK          bool            `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Code        int             `json:"error_code"`
		Description string          `json:"description"`
		Parameters  struct {
			RetryAfter int   `json:"retry_after"`
			MigrateTo  int64 `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	switch {
	case err != nil:
		return a.Classify(method, fmt.Errorf("HTTP %d: %w", resp.StatusCode, err))
	case !answer.OK:
		return newError(method, answer.Code, a.mask(answer.Description), answer.Parameters.RetryAfter, answer.Parameters.MigrateTo)
	case result == nil:
		return nil
	}
	if err = json.Unmarshal(answer.Result, result); err != nil {
		return a.Classify(method, fmt.Errorf("result: %w", err))
	}
	return nil
}

// Updates asks for updates and waits for one, at most wait. An offset above 0 tells Telegram to forget everything before
// it. Each update is returned as Telegram wrote it, because one that can't be decoded must not take the others with it.
func (a *API) Updates(ctx context.Context, offset int64, wait time.Duration, limit int) ([]json.RawMessage, error) {
	params := struct {
		Offset  int64    `json:"offset,omitempty"`
		Limit   int      `json:"limit,omitempty"`
		Timeout int      `json:"timeout"`
		Allowed []string `json:"allowed_updates"`
	}{offset, limit, int(wait / time.Second), AllowedUpdates()}
	var out []json.RawMessage
	err := a.call(ctx, wait+10*time.Second, "getUpdates", params, &out)
	return out, err
}

// Me is the bot's own account; it is also how a wrong token is found out.
func (a *API) Me(ctx context.Context) (*models.User, error) {
	me := &models.User{}
	if err := a.call(ctx, callTimeout, "getMe", struct{}{}, me); err != nil {
		return nil, err
	}
	return me, nil
}

// DeleteWebhook makes polling possible. It keeps the updates that wait at Telegram.
func (a *API) DeleteWebhook(ctx context.Context) error {
	return a.call(ctx, callTimeout, "deleteWebhook", struct {
		Drop bool `json:"drop_pending_updates"`
	}{}, nil)
}

// SetWebhook makes Telegram post updates to url with secret. It keeps the updates that wait there.
func (a *API) SetWebhook(ctx context.Context, url, secret string) error {
	return a.lib(ctx, "setWebhook", func(ctx context.Context) error {
		_, err := a.bot.SetWebhook(ctx, &tg.SetWebhookParams{URL: url, SecretToken: secret, AllowedUpdates: AllowedUpdates()})
		return err
	})
}

// SetCommands registers the commands that clients offer; scope nil is for everybody.
func (a *API) SetCommands(ctx context.Context, commands []models.BotCommand, scope models.BotCommandScope) error {
	return a.lib(ctx, "setMyCommands", func(ctx context.Context) error {
		_, err := a.bot.SetMyCommands(ctx, &tg.SetMyCommandsParams{Commands: commands, Scope: scope})
		return err
	})
}

// AnswerQuery answers a tap. Text is cut to Telegram's 200 characters.
func (a *API) AnswerQuery(ctx context.Context, id, text string, alert bool) error {
	if r := []rune(text); len(r) > 200 {
		text = string(r[:199]) + "…"
	}
	return a.lib(ctx, "answerCallbackQuery", func(ctx context.Context) error {
		_, err := a.bot.AnswerCallbackQuery(ctx, &tg.AnswerCallbackQueryParams{CallbackQueryID: id, Text: text, ShowAlert: alert})
		return err
	})
}

// Download fetches a file that a person sent, if it has at most limit bytes (Telegram itself gives out 20 MB at most).
func (a *API) Download(ctx context.Context, fileID string, limit int64) ([]byte, error) {
	const method = "getFile"
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	var f models.File
	if err := a.call(ctx, callTimeout, method, struct {
		ID string `json:"file_id"`
	}{fileID}, &f); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/file/bot"+a.token+"/"+f.FilePath, nil)
	if err != nil {
		return nil, a.Classify(method, err)
	}
	resp, err := a.client.Do(r)
	if err != nil {
		return nil, a.Classify(method, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, newError(method, resp.StatusCode, "file download: HTTP "+strconv.Itoa(resp.StatusCode), 0, 0)
	}
	limit = min(limit, maxDownload)
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, a.Classify(method, err)
	}
	if int64(len(b)) > limit {
		return nil, newError(method, http.StatusBadRequest, "file is too big", 0, 0)
	}
	return b, nil
}

// lib runs one of the library's methods under a deadline.
func (a *API) lib(ctx context.Context, method string, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return a.Classify(method, call(ctx))
}

// Post carries out m, addressed to message id where it needs one, and returns the id of a message that was sent. It is
// one attempt: order, pace and repetition are the outbox's.
func (a *API) Post(ctx context.Context, m *Outgoing, id, replyTo int, file []byte) (int, error) {
	timeout := callTimeout
	if m.Kind == KindDocument {
		timeout = fileTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	got := &captured{}
	ctx = context.WithValue(ctx, capturedKey{}, got)
	method, sent, err := a.post(ctx, m, id, replyTo, file)
	if err == nil {
		if sent != nil {
			return sent.ID, nil
		}
		return id, nil
	}
	// What Telegram answered with "ok" was done, also when the library does not know some part of the answer: an error
	// here would send it again.
	var ok struct {
		OK     bool            `json:"ok"`
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(got.body, &ok) == nil && ok.OK {
		var message struct {
			ID int `json:"message_id"`
		}
		_ = json.Unmarshal(ok.Result, &message) // a result that is no message has no id
		return cmp.Or(message.ID, id), nil
	}
	return 0, a.Classify(method, err)
}

func (a *API) post(ctx context.Context, m *Outgoing, id, replyTo int, file []byte) (method string, sent *models.Message, err error) {
	off := true
	preview := &models.LinkPreviewOptions{IsDisabled: &off}
	var reply *models.ReplyParameters
	if replyTo != 0 {
		reply = &models.ReplyParameters{MessageID: replyTo, AllowSendingWithoutReply: true}
	}
	switch m.Kind {
	case KindSend:
		sent, err = a.bot.SendMessage(ctx, &tg.SendMessageParams{
			ChatID: m.Chat.ID, MessageThreadID: m.Chat.Topic, Text: m.Text, Entities: entities(m.Entities),
			LinkPreviewOptions: preview, DisableNotification: m.Silent, ReplyParameters: reply, ReplyMarkup: keyboard(m.Buttons),
		})
		return "sendMessage", sent, err
	case KindEdit:
		sent, err = a.bot.EditMessageText(ctx, &tg.EditMessageTextParams{
			ChatID: m.Chat.ID, MessageID: id, Text: m.Text, Entities: entities(m.Entities),
			LinkPreviewOptions: preview, ReplyMarkup: keyboard(m.Buttons),
		})
		return "editMessageText", sent, err
	case KindButtons:
		sent, err = a.bot.EditMessageReplyMarkup(ctx, &tg.EditMessageReplyMarkupParams{
			ChatID: m.Chat.ID, MessageID: id, ReplyMarkup: keyboard(m.Buttons),
		})
		return "editMessageReplyMarkup", sent, err
	case KindDelete:
		_, err = a.bot.DeleteMessage(ctx, &tg.DeleteMessageParams{ChatID: m.Chat.ID, MessageID: id})
		return "deleteMessage", nil, err
	case KindDocument:
		sent, err = a.bot.SendDocument(ctx, &tg.SendDocumentParams{
			ChatID: m.Chat.ID, MessageThreadID: m.Chat.Topic, Caption: m.Text, CaptionEntities: entities(m.Entities),
			Document:            &models.InputFileUpload{Filename: m.Document.Name, Data: bytes.NewReader(file)},
			DisableNotification: m.Silent, ReplyParameters: reply, ReplyMarkup: keyboard(m.Buttons),
		})
		return "sendDocument", sent, err
	case KindDraft:
		_, err = a.bot.SendMessageDraft(ctx, &tg.SendMessageDraftParams{
			ChatID: m.Chat.ID, MessageThreadID: m.Chat.Topic, DraftID: strconv.Itoa(m.Draft), Text: m.Text,
			Entities: entities(m.Entities), CanStop: m.CanStop,
		})
		return "sendMessageDraft", nil, err
	}
	return string(m.Kind), nil, errors.New("not a kind")
}
