package telegramtest

import (
	"encoding/json"
	"regexp"
	"unicode/utf8"
)

const (
	maxCommands    = 100
	maxDescription = 256
)

// commandScope is the key under which a list of commands is kept: its scope and language.
func (c *call) commandScope() (string, error) {
	scope := struct {
		Type   string `json:"type"`
		ChatID any    `json:"chat_id,omitempty"`
		UserID int64  `json:"user_id,omitempty"`
	}{Type: "default"}
	if _, err := c.params.object("scope", "BotCommandScope", &scope); err != nil {
		return "", err
	}
	switch scope.Type {
	case "default", "all_private_chats", "all_group_chats", "all_chat_administrators", "chat", "chat_administrators", "chat_member":
	default:
		return "", badRequest("can't parse BotCommandScope: Unsupported type specified")
	}
	language := c.params.values["language_code"]
	if language != "" && !regexp.MustCompile(`^[a-z]{2}$`).MatchString(language) {
		return "", badRequest("invalid language code specified")
	}
	key, err := json.Marshal(scope)
	if err != nil {
		return "", badRequest("can't parse BotCommandScope JSON object")
	}
	return string(key) + language, nil
}

func (c *call) setMyCommands() (any, error) {
	var list []Command
	if _, err := c.params.object("commands", "commands", &list); err != nil {
		return nil, err
	}
	if len(list) > maxCommands {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for _, one := range list {
		if !regexp.MustCompile(`^[a-z0-9_]{1,32}$`).MatchString(one.Command) {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
		if n := utf8.RuneCountInString(one.Description); n < 1 || n > maxDescription {
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	scope, err := c.commandScope()
	if err != nil {
		return nil, err
	}
	c.s.commands[scope] = list
	return true, nil
}

func (c *call) getMyCommands() (any, error) {
	scope, err := c.commandScope()
	if err != nil {
		return nil, err
	}
	if list := c.s.commands[scope]; list != nil {
		return list, nil
	}
	return []Command{}, nil
}

func (c *call) deleteMyCommands() (any, error) {
	scope, err := c.commandScope()
	if err != nil {
		return nil, err
	}
	delete(c.s.commands, scope)
	return true, nil
}
