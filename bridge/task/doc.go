// Package task is work without a person in front of it: schedules, delayed prompts and tasks with steps, and what becomes
// of them. It knows no messenger: what people are to be told goes to Config.Notify in the commit in which it happens.
//
// It guarantees that each planned time of a schedule is fired exactly once or reported as missed, across gateways,
// restarts, clock steps and daylight saving; that a task is never run twice at the same time; and that everything which
// it starts, by whatever way, is handed to its host by Service.order as a prompt that carries the mode the task was made
// under, to which the host adds the chat's mode at each ask (bridge, Order.policy). It yields no policy itself.
//
// It does not guarantee that a task runs at the very second: it waits for its host, its workspace and a free place.
package task
