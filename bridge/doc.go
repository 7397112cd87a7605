// Package bridge holds what a chat is (its project, runtime, mode, interaction and session), the queue of its prompts, its
// turns and its timeline, and the loop of the host that carries turns out. It knows no messenger and no particular
// runtime.
//
// It has two halves that meet only in the store, also when they are one process. Chats and Follower are the gateway's:
// they change chats, hand turns to hosts as orders, and read the hosts' logs. Host is the host's: it takes orders, runs
// them in runtimes' sessions and writes what happens into its log.
//
// It guarantees: one turn a chat and one writing turn a workspace at a time; a prompt is handed out once, and a turn
// whose host died is not started again by itself; the entries of a host's log are followed in order, each exactly once,
// in the same commit as what they cause; the policy of a running turn is the chat's at the moment of each ask. It does
// not guarantee that a message about a streaming turn arrives: those are hints, the log is the truth.
package bridge
