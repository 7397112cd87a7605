package codex_test

const replayVariable = "DRAWBRIDGE_TEST_REPLAY"

func runReplay(string) int { return 1 }
