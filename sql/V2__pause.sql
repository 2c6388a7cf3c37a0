-- The lease store, version 2: an operator holds a tenant still. While paused_at is set nobody is given the lease, but to forget the tenant.
ALTER TABLE lease ADD COLUMN paused_at timestamptz;
