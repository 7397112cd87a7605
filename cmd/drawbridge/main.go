// Command drawbridge bridges Telegram chats to coding agents and puts their questions on buttons.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"drawbridge/internal/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := app.Main(ctx, app.Process{Args: os.Args[1:], Env: os.Environ(), In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
