"""What a step's data is expected to be like: rules on its profile, judged while the step is made."""
