//go:build !linux

package storetest

import "syscall"

// diesWithParent has no means outside Linux: a server whose test was killed stays.
func diesWithParent() *syscall.SysProcAttr { return nil }
