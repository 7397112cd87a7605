package config

import "errors"

// Role is what a process is going to be.
type Role string

// The roles are named after their commands. Serve is gateway and host in one process.
const (
	RoleServe   Role = "serve"
	RoleGateway Role = "gateway"
	RoleHost    Role = "host"
)

// For returns c as a process of that role may have it, or one line for each thing that the role needs and c lacks. A
// host alone gets no bot token and no hooks, a gateway alone no keys of models and no MCP servers: what a process does not need, it cannot lose.
func (c Config) For(r Role) (Config, error) {
	var missing []error
	lacks := func(key, allowed string) {
		missing = append(missing, &mistakeError{Key: key, Allowed: "not set; " + allowed})
	}
	if r != RoleHost && !c.Telegram.Token.Set() {
		lacks("token", "set DRAWBRIDGE_TOKEN to the bot's token from @BotFather")
	}
	if r != RoleServe && !c.RedisURL.Set() {
		lacks("redis_url", "`drawbridge "+string(r)+"` shares its store with other processes, so set REDIS_URL, or run `drawbridge serve`")
	}
	if r != RoleGateway {
		if len(c.Projects) == 0 {
			lacks("project", "set DRAWBRIDGE_PROJECTS to name=/path/of/folder, or write a [[project]] into "+FileName)
		}
		if len(c.Runtimes) == 0 {
			lacks("runtime", "set DRAWBRIDGE_AGENTS to codex or claude, or DRAWBRIDGE_MODEL_URL and DRAWBRIDGE_MODEL, or write a [[runtime]] into "+FileName)
		}
	}
	if len(missing) > 0 {
		return Config{}, errors.Join(missing...)
	}
	switch r {
	case RoleHost:
		c.Telegram = Telegram{}
		c.Hooks, c.HooksListen, c.On = nil, "", nil
	case RoleGateway:
		runtimes := make([]Runtime, len(c.Runtimes))
		for i, rt := range c.Runtimes {
			rt.Key = Secret{}
			runtimes[i] = rt
		}
		c.Runtimes = runtimes
		c.Servers = nil
		if c.Reviewer != nil {
			r := *c.Reviewer
			r.Key = Secret{}
			c.Reviewer = &r
		}
	case RoleServe:
	}
	return c, nil
}
