package claude

// Data is the runtime's folder.
func (r *Runtime) Data() string { return r.config.Data }
