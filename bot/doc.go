// Package bot is Drawbridge's side of Telegram: what people write and tap comes in here, and what they are shown goes
// out here.
//
// It has two halves. Transport carries: the poller and the webhook put raw updates into the inbox, the inbox hands each
// of them to a handler, the outbox sends messages, edits and deletions, the acker answers taps, and a lease decides
// which of several gateways does all this. Conversation decides what an update means and what a person is shown; it
// stands on transport and on the rooms below this one.
//
// Transport guarantees that
//
//   - an update is committed before Telegram is told that it arrived, and handled in the one commit that also removes it
//     from the inbox: across crashes, redeliveries and two gateways at once it takes effect once, or is set aside and
//     reported;
//   - taps and control commands never wait behind ordinary messages, and the ordinary messages of a chat keep their order;
//   - what is put into the outbox reaches Telegram at least once and in the order of its chat, or is dropped for a reason
//     that is recorded; Telegram's limits and its retry_after are kept, and a preview never costs a final text its place.
//
// It does not guarantee that a message is sent only once (a crash between the sending and its commit repeats it: the Bot
// API has no idempotency key), that Live edits or answers to taps arrive at all, or an order between chats.
//
// Only this package knows go-telegram/bot, and uses its types and sending methods only: its polling loop and webhook
// confirm updates before they are handled and go deaf on one that cannot be decoded.
package bot
