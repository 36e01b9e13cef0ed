"""Moving over from OpenDCAI's DataFlow: what its cache folders and pipeline files hold."""
