// Package formatting turns what agents write into what Telegram accepts: Markdown into text with entities, long text
// into several messages, diffs, escapes for bytes that must not hide, and the removal of blocks that are meant for an
// agent and not for a reader.
//
// Everything here is a pure function of its arguments (a [Builder] and a [Stream] hold only what was given to them);
// nothing is sent, logged or remembered. For every input, however broken, the functions return without a panic and
// the messages they return satisfy Telegram's rules for entities: offsets in UTF-16 units and never inside a surrogate
// pair, at most [MaxEntities] a message, at most [MaxLength] UTF-16 units of text, code and pre holding no other entity
// and standing only inside a quote, quotes never nested, and never a message without a visible character.
//
// The package does not know Telegram's methods, does not escape for MarkdownV2 or HTML (entities need neither), and
// gives no opinion on what a text means.
package formatting
