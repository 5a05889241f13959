"""Five hundred tools such as servers for real services have, and what a person would ask of twenty of them."""

from __future__ import annotations

from toolyard.core.tool import JsonInput, ToolSpec

VERBS = {
    "create": "Create {a}.",
    "get": "Retrieve {a} by its id.",
    "list": "List all {many}, page by page.",
    "update": "Update the fields of {a}.",
    "delete": "Delete {a} for good.",
    "search": "Search {many} by a query.",
    "export": "Export {many} as CSV.",
    "archive": "Archive {a}, so that it is no longer listed.",
    "share": "Share {a} with somebody else.",
    "comment": "Leave a comment on {a}.",
}
THINGS = {
    "github": ("issue", "pull request", "release"),
    "jira": ("ticket", "sprint", "epic"),
    "slack": ("channel", "message", "reminder"),
    "gmail": ("draft", "label", "thread"),
    "calendar": ("event", "room", "invitation"),
    "drive": ("document", "folder", "spreadsheet"),
    "stripe": ("invoice", "refund", "subscription"),
    "salesforce": ("lead", "opportunity", "contact"),
    "zendesk": ("case", "macro", "satisfaction rating"),
    "notion": ("page", "database", "block"),
    "aws": ("bucket", "instance", "queue"),
    "kubernetes": ("pod", "deployment", "secret"),
    "grafana": ("dashboard", "alert", "panel"),
    "postgres": ("table", "index", "backup"),
    "shopify": ("product", "order", "discount"),
    "spotify": ("playlist", "album", "podcast"),
}
"""Three things of each of sixteen services, ten verbs each: 480 tools; twenty more do something of their own."""
SINGLE = {
    "weather_forecast": ("Get the weather forecast for a place and a number of days.", ("place", "days")),
    "convert_currency": ("Convert an amount of money from one currency to another at today's rate.", ("amount", "to")),
    "translate_text": ("Translate a text into another language.", ("text", "target_language")),
    "resize_image": ("Resize a picture to a width and height.", ("file", "width", "height")),
    "transcribe_audio": ("Turn speech in an audio file into text.", ("file",)),
    "text_to_speech": ("Read a text aloud and save the sound.", ("text", "voice")),
    "pdf_to_text": ("Extract the text of a PDF document.", ("file",)),
    "merge_pdfs": ("Merge several PDF documents into one.", ("files",)),
    "qr_code": ("Make a QR code for a link.", ("link",)),
    "shorten_url": ("Make a short link for a long one.", ("url",)),
    "http_request": ("Send an HTTP request and return the answer.", ("url", "method", "body")),
    "run_sql": ("Run a SQL statement on the warehouse and return the rows.", ("statement",)),
    "run_python": ("Execute Python code in a sandbox.", ("code",)),
    "send_sms": ("Send a text message to a phone number.", ("phone", "text")),
    "dns_lookup": ("Resolve a host name to addresses.", ("host",)),
    "whois_domain": ("Tell who registered a domain and until when.", ("domain",)),
    "compress_files": ("Pack files into a zip archive.", ("files",)),
    "hash_file": ("Compute the SHA-256 checksum of a file.", ("file",)),
    "stock_quote": ("Get the current price of a stock.", ("symbol",)),
    "book_flight": ("Book a seat on a flight.", ("from", "to", "date")),
}
QUESTIONS = {
    "Open a new bug report in our GitHub repository": "github_create_issue",
    "Which channels are there in Slack?": "slack_list_channel",
    "Will it rain in Berlin tomorrow?": "weather_forecast",
    "How many euros are 100 dollars?": "convert_currency",
    "Put this paragraph into French": "translate_text",
    "Make the photo smaller, 800 pixels wide": "resize_image",
    "Give the customer his money back in Stripe": "stripe_create_refund",
    "Remove the old product from the Shopify shop": "shopify_delete_product",
    "What was said in this recording? I need it in writing": "transcribe_audio",
    "Join these PDF files": "merge_pdfs",
    "Text my colleague's phone that I am late": "send_sms",
    "How much is a share of Apple worth?": "stock_quote",
    "Change the due date of a Jira ticket": "jira_update_ticket",
    "Find all Notion pages about onboarding": "notion_search_page",
    "Invite Anna to the calendar event": "calendar_create_invitation",
    "Zip the log files": "compress_files",
    "Write a comment on the pull request": "github_comment_pull_request",
    "Let a teammate see my Grafana dashboard": "grafana_share_dashboard",
    "Look up the IP address of example.org": "dns_lookup",
    "Which pods run in Kubernetes?": "kubernetes_list_pod",
}
MORE_QUESTIONS = {
    "Cancel the subscription of a client": "stripe_delete_subscription",
    "Add a coupon for the summer sale": "shopify_create_discount",
    "Set an alarm when the CPU is high in Grafana": "grafana_create_alert",
    "Show me one particular Salesforce contact": "salesforce_get_contact",
    "Start a new virtual machine on AWS": "aws_create_instance",
    "Get rid of the S3 bucket": "aws_delete_bucket",
    "Make a backup of the Postgres database": "postgres_create_backup",
    "Read this article to me aloud": "text_to_speech",
    "What does the PDF say?": "pdf_to_text",
    "I have to fly to Paris on Friday": "book_flight",
    "Who owns the domain example.com?": "whois_domain",
    "Get a small link for this long address": "shorten_url",
    "Verify the checksum of the download": "hash_file",
    "Post a message in Slack": "slack_create_message",
    "Rename a playlist": "spotify_update_playlist",
    "Download all orders as a spreadsheet file from Shopify": "shopify_export_order",
    "Look for an email thread about the contract": "gmail_search_thread",
    "Which deployments are there in the cluster?": "kubernetes_list_deployment",
    "Query the data warehouse": "run_sql",
    "Give Bob access to the Drive folder": "drive_share_folder",
}
"""Written after the ranking, to see whether it holds for questions that it was not made with."""


def schema(*names: str) -> JsonInput:
    return JsonInput(schema={"type": "object", "properties": {name: {"type": "string"} for name in names}})


def many_tools() -> list[ToolSpec]:
    specs = [
        ToolSpec(
            name=f"{service}_{verb}_{thing.replace(' ', '_')}",
            description=f"{about.format(a=f'a {thing}', many=f'{thing}s')[:-1]} in {service.capitalize()}.",
            input=schema("id", "fields") if verb in ("create", "update") else schema("id"),
        )
        for service, things in THINGS.items()
        for thing in things
        for verb, about in VERBS.items()
    ]
    return specs + [
        ToolSpec(name=name, description=about, input=schema(*names)) for name, (about, names) in SINGLE.items()
    ]
