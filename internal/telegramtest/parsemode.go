package telegramtest

// parsed is the text of a call that asks the server to parse it. The modes are known and their parsers are not
// simulated: rather than to accept what Telegram might refuse, every such text is refused.
func (s *Server) parsed(_, mode string) (string, []Entity, error) {
	switch mode {
	case "html", "markdown", "markdownv2":
		return "", nil, badRequest("can't parse entities: parse_mode is not simulated")
	default:
		return "", nil, badRequest("unsupported parse_mode")
	}
}
