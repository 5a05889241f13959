"""For those who write providers: requests with retries, streams, prices, and the three forms that model APIs have."""
