// Package telegramtest is a strict stand-in for Telegram's Bot API server, with people who can be moved from outside.
//
// It answers the methods that Drawbridge calls as api.telegram.org does (Bot API 10.3), and refuses what Telegram
// refuses, in Telegram's words: texts are measured in code points, entities in UTF-16 units, callback data in bytes;
// a callback query is answered once and in time; an edit that changes nothing is an error; a second poller ends the
// first one; updates come again until an offset confirms them; who sends too fast is told how long to wait. A person,
// a test or a page plays the other side through /sim (docs/sim.md): writes messages, taps buttons, orders faults,
// moves the clock. The demo runs the same server that the tests do.
//
// What it guarantees: every request is carried out whole or not at all, under one lock; what a call changed is visible
// to /sim before the call is answered; the order of /sim/calls is the order in which calls were received.
//
// What it does not do: keep anything on disk, speak TLS, simulate channels, inline mode, business accounts, payments,
// stickers, polls or rich messages, find links, mentions or hashtags in texts (bot commands in people's messages are
// found), or know Telegram's real flood limits, which are unpublished: the numbers of its FAQ are used.
//
// The types here are its own. It imports no client library, because it exists to check one.
package telegramtest
